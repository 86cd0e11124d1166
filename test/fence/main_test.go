// Package fence shows what real servers do to the exactness: the built consumer runs as
// processes on a real Kafka and a real Redis that are killed, paused, rolled back and damaged
// under it, once for each kind of fault. Each test ends in the oracle's standings, or in the
// halt that docs/halts.md lists for it. When faults meet, test/simulate and test/chaos
// show it.
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
	// Most of a test's time is an outage that has to last: more of them than there
	// are cores may wait at once.
	harness.MainWaiting(m)
}

// quick are settings under which a lost owner and a lost answer are found soon.
var quick = map[string]string{
	"kafka.session_timeout": "3s", "redis.timeout": "1s",
}

// newPlace is a place on the shared Kafka with a Redis of its own, which only a real
// one can be.
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

// one is an event of a member for a partition.
func one(partition int, member string, points int) *kgo.Record {
	return harness.Record(partition, fmt.Sprintf(`{"user_id":%q,"points":%d}`, member, points))
}
