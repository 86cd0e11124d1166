// Package fence verifies exactness against faults of real servers: the built consumer runs as processes on a real
// Kafka and a real Redis that are killed, paused, rolled back and damaged, with one test for each kind of fault.
// Each test ends with the oracle's standings, or with the halt that docs/halts.md lists for the fault. test/simulate
// and test/chaos cover combinations of faults.
package fence

import (
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) {
	// The tests spend most of their time waiting for the end of an outage, so more of them than there are
	// cores may wait at once.
	harness.MainWaiting(m)
}

// quick are settings with which a lost owner and a lost answer are detected quickly.
var quick = map[string]string{
	"kafka.session_timeout": "3s", "redis.timeout": "1s",
}

// newPlace returns a place on the shared Kafka with its own Redis, which must be a real one.
func newPlace(t *testing.T, o harness.Options, redisArgs ...string) *harness.Place {
	t.Helper()
	if o.Kafka == nil {
		o.Kafka = testenv.RealKafka(t, "what a group, its offsets and a log do when clients die or a topic changes")
	}
	if o.Redis == nil {
		o.Redis = testenv.PrivateRedis(t, redisArgs...)
	}
	settings := maps.Clone(quick)
	maps.Copy(settings, o.Settings)
	o.Settings = settings
	return harness.New(t, o)
}

// one returns an event of a member for a partition.
func one(partition int, member string, points int) *kgo.Record {
	return harness.Record(partition, fmt.Sprintf(`{"user_id":%q,"points":%d}`, member, points))
}
