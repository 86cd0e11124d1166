package run

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// words returns the reasons in one line.
func words(all []api.Reason) string {
	var words []string
	for _, r := range all {
		words = append(words, strings.TrimSpace(r.Reason+" "+r.Partition))
	}
	return strings.Join(words, ", ")
}

// The tests run in synctest bubbles, so that no time passes between the test's reading of the clock and the
// code's.
func TestAConsumerIsReadyOnceItIsInItsGroupAndNoPartitionStandsStill(t *testing.T) {
	synctest.Test(t, isReadyOnceInItsGroup)
}

func isReadyOnceInItsGroup(t *testing.T) {
	t.Helper()
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	partition := func(field, state, reason string, since time.Time) ingest.PartitionSnapshot {
		return ingest.PartitionSnapshot{Field: field, Line: workers.Line{State: state, Reason: reason, What: "what", Remedy: "remedy"}, Since: since}
	}
	in := group.Membership{Joined: true, Joins: 1, Since: ago(time.Hour)}
	for name, test := range map[string]struct {
		now     ingest.Snapshot
		leaving bool
		want    string
	}{
		"not in its group yet":         {now: ingest.Snapshot{Membership: group.Membership{Since: ago(0)}}, want: "joining"},
		"a member without a partition": {now: ingest.Snapshot{Membership: in}},
		"a rebalance":                  {now: ingest.Snapshot{Membership: group.Membership{Joins: 3, Since: ago(patience / 2)}}},
		"a rebalance that lasts":       {now: ingest.Snapshot{Membership: group.Membership{Joins: 3, Since: ago(2 * patience)}}, want: "joining"},
		"leaving":                      {now: ingest.Snapshot{Membership: group.Membership{Joins: 3, Since: ago(2 * patience)}}, leaving: true},
		"partitions that run":          {now: ingest.Snapshot{Membership: in, Partitions: []ingest.PartitionSnapshot{partition("t/0", workers.StateRunning, "", time.Time{})}}},
		"one that waits for a moment":  {now: ingest.Snapshot{Membership: in, Partitions: []ingest.PartitionSnapshot{partition("t/0", workers.StateWaiting, "", ago(patience/2))}}},
		"one that waits for long":      {now: ingest.Snapshot{Membership: in, Partitions: []ingest.PartitionSnapshot{partition("t/0", workers.StateWaiting, "", ago(2*patience))}}, want: "waiting t/0"},
		"one that is refilled":         {now: ingest.Snapshot{Membership: in, Partitions: []ingest.PartitionSnapshot{{Field: "t/0", Line: workers.Line{State: workers.StateRunning}, Refill: 7}}}, want: "refilling t/0"},
		"halted ones": {now: ingest.Snapshot{Membership: in, Partitions: []ingest.PartitionSnapshot{
			partition("t/0", workers.StateHalted, health.HaltGap, time.Time{}), partition("t/1", workers.StateRunning, "", time.Time{}),
			partition("t/2", workers.StateHalted, health.HaltTorn, ago(patience/2)),
		}}, want: "gap t/0, torn t/2"},
	} {
		if got := words(ofConsumer(test.now, "group", test.leaving)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	waits := ofConsumer(ingest.Snapshot{Membership: in, Partitions: []ingest.PartitionSnapshot{partition("t/0", workers.StateWaiting, health.WaitsMemory, ago(7*time.Second))}}, "group", false)
	if want := (api.Reason{Reason: "waiting", Cause: "memory", Partition: "t/0", What: "for 7s: what", Remedy: "remedy"}); len(waits) != 1 || waits[0] != want {
		t.Errorf("%+v, want %+v", waits, want)
	}
	got := ofConsumer(ingest.Snapshot{Membership: group.Membership{Since: ago(0), Err: errors.New("topic points doesn't exist yet")}}, "group", false)
	if want := "it has not joined group group yet: topic points doesn't exist yet"; got[0].What != want {
		t.Errorf("%q, want %q", got[0].What, want)
	}
}

func TestReadinessTellsWhatIsWaitedForAndTheEnd(t *testing.T) { synctest.Test(t, tellsWhatIsWaitedFor) }

func tellsWhatIsWaitedFor(t *testing.T) {
	t.Helper()
	r := newReadiness(config.Defaults())
	see := func(want string) {
		t.Helper()
		if got := words(r.reasons()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	see("starting")
	r.waitsForKafka(nil)
	see("waiting_for_kafka")
	r.waitsForRedis(errors.New("connection refused"))
	see("waiting_for_redis")
	if what := r.reasons()[0].What; what != "it waits for Redis at localhost:6379: connection refused" {
		t.Errorf("it says %q", what)
	}
	r.redisAnswered(errors.New("timeout"))
	see("waiting_for_redis")
	r.redis.since = time.Now().Add(-2 * patience)
	r.redisAnswered(errors.New("timeout"))
	see("waiting_for_redis, redis_unreachable")
	r.redisAnswered(nil)
	see("waiting_for_redis")
	r.stops()
	see("stopping")
	r.waitsForKafka(nil) // was already on its way
	see("stopping")
}

func TestOnlyAWorkerThatHangsIsAReasonForARestart(t *testing.T) { synctest.Test(t, onlyAHangIsAReason) }

func onlyAHangIsAReason(t *testing.T) {
	t.Helper()
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	const limit = time.Minute
	for name, test := range map[string]struct {
		state string
		beat  time.Time
		want  string
	}{
		"it came round a while ago": {workers.StateRunning, ago(limit / 2), ""},
		"it hangs":                  {workers.StateRunning, ago(2 * limit), "stuck t/0"},
		"it waits":                  {workers.StateWaiting, ago(2 * limit), ""},
		"it is halted":              {workers.StateHalted, ago(2 * limit), ""},
		"it hasn't begun":           {workers.StateRunning, time.Time{}, ""},
	} {
		now := ingest.Snapshot{Partitions: []ingest.PartitionSnapshot{{Field: "t/0", Line: workers.Line{State: test.state}, Beat: test.beat}}}
		if got := words(hanging(now, limit)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := newReadiness(config.Defaults()).broken(); len(got) > 0 {
		t.Errorf("before it begins: %v", got)
	}
}
