// Package fence shows, one by one, what the exactness rests on and what outages do
// to it: the built consumer runs as processes on a real Kafka and a real Redis that
// are killed, paused, rolled back, wiped and damaged under it. Each test ends in the
// oracle's standings, or in the halt that the README lists for it.
package fence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) {
	// Most of a test's time is an outage that has to last: more of them than there
	// are cores may wait at once.
	harness.MainWaiting(m)
}

// within is how long anything may take on a machine that is busy.
const within = 90 * time.Second

// quick are settings under which a lost owner and a lost answer are found soon.
var quick = map[string]string{
	"kafka.session_timeout": "3s", "kafka.heartbeat": "500ms", "redis.timeout": "1s",
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

// earned are events of members over partitions, repeatable by their seed: corrections,
// two boards, times in the last hours of today, and a bad one in a hundred.
func earned(seed uint64, events, members, partitions int) []*kgo.Record {
	random := rand.New(rand.NewPCG(seed, 1))
	records := make([]*kgo.Record, events)
	now := time.Now()
	for i := range records {
		member := random.IntN(members)
		board, points := "global", random.IntN(500)-50
		if random.IntN(4) == 0 {
			board = "eu"
		}
		at := harness.OfToday(now.Add(-time.Duration(random.IntN(4*3600*1000))*time.Millisecond), now).UnixMilli()
		value := fmt.Sprintf(`{"user_id":"m%d","points":%d,"board":%q,"occurred_at":%d}`, member, points, board, at)
		if random.IntN(100) == 0 {
			value = fmt.Sprintf(`{"user_id":"m%d","points":"many"}`, member)
		}
		records[i] = harness.Record(member%partitions, value)
	}
	return records
}

// one is an event of a member for a partition.
func one(partition int, member string, points int) *kgo.Record {
	return harness.Record(partition, fmt.Sprintf(`{"user_id":%q,"points":%d}`, member, points))
}

// finish ends everything in order, and holds what is there and what was counted
// against the oracle.
func finish(t *testing.T, place *harness.Place) {
	t.Helper()
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)
	place.Check(t)
}
