package e2e

// Repeats count once, through kills, a Redis that goes back and a rebuild: against the oracle,
// which finds them by code of its own.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/testenv"
)

// repeating are events of which many repeat one of the last few thousand, a few without ids, bad
// ones, and fixed ones after them.
func repeating(r *rand.Rand, n, partitions int) (all []*kgo.Record) {
	for i := range n {
		partition, member, id := r.IntN(partitions), r.IntN(3000), r.IntN(4)
		switch {
		case i%50 == 0: // its repeat counts: it isn't valid itself
			all = append(all, harness.Record(partition, fmt.Sprintf(`{"event_id":"bad%d","user_id":"p%d","points":"many"}`, i, member)),
				harness.Record(partition, fmt.Sprintf(`{"event_id":"bad%d","user_id":"p%d","points":3}`, i, member)))
		case i%10 == 0:
			all = append(all, harness.Record(partition, fmt.Sprintf(`{"user_id":"p%d","points":2}`, member)))
		default:
			all = append(all, harness.Record(partition, fmt.Sprintf(`{"event_id":"e%d","user_id":"p%d","points":%d}`, id, member, 1+i%9)))
		}
	}
	return all
}

// ruled are events on boards of several rules, of which many repeat one of the last few thousand.
// Some are before a season, in it or after it; many lie within a tick of one another.
func ruled(r *rand.Rand, n, partitions int) (all []*kgo.Record) {
	now := time.Now().Truncate(time.Second)
	for len(all) < n {
		event := map[string]any{"event_id": fmt.Sprintf("e%d", r.IntN(4))}
		switch at := now.Add(-time.Duration(r.IntN(5000)) * time.Millisecond); r.IntN(8) {
		case 0: // at its record's time
		case 1:
			event["occurred_at"] = at.Add(-time.Duration(r.IntN(240)) * time.Minute).UnixMilli()
		case 2:
			event["occurred_at"] = at.AddDate(0, 0, -r.IntN(60)).UnixMilli()
		default:
			event["occurred_at"] = at.UnixMilli()
		}
		partition, member := r.IntN(partitions), fmt.Sprintf("p%d", r.IntN(3000))
		if r.IntN(20) == 0 {
			all = append(all, harness.TakenBack(r, partition, member, event)...)
		} else {
			all = append(all, harness.RuledEvent(r, partition, member, event))
		}
	}
	return all
}

// Two topics feed boards by several rules. What is counted is the oracle's after two kills within
// sweeps, which others finish, after a rebuild beside the traffic and after Redis was lost; on one
// shard and on several.
func TestRepeatsCountOnceThroughKillsAndARebuild(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for _, shards := range harness.OneAndFive(t) {
		t.Run(shards, func(t *testing.T) {
			settings := harness.Ruled(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
			maps.Copy(settings, map[string]string{
				"event.duplicates": "4000", "piece_time": "500us", "fold_memory": "32MiB", "redis.shards": shards,
			})
			place := harness.New(t, harness.Options{Partitions: 2, Settings: settings})
			other := place.Beside(t, 1)
			r := rand.New(rand.NewPCG(5, 5)) //nolint:gosec // a test's
			more := func() []*kgo.Record { return ruled(r, 10_000, 2) }
			place.Publish(t, more()...)
			other.Publish(t, ruled(r, 4000, 1)...)
			first := place.Start(t)
			place.AwaitCaughtUp(t, within) // so that the sweeps have originals before them
			first.Terminate(t)
			place.Publish(t, more()...)
			for range 2 {
				at := place.KillInSweep(t, within, harness.Sweep{Start: func() *harness.Consumer { return place.Start(t) }, More: more})
				t.Logf("killed at %v", at)
			}
			end := watch(t, place)
			successor := place.Start(t)
			successor.Log.Await(t, within, "looked through records for duplicates")
			other.Publish(t, ruled(r, 2000, 1)...)
			place.AwaitCaughtUp(t, within)
			end()
			place.Check(t)
			if n := successor.Terminate(t); n.Duplicates == 0 || n.Sum() != n.Consumed {
				t.Errorf("the successor ends with %+v", n)
			}
			want := place.Boards(t)
			last := place.Start(t)
			if code, said := says(t, place, nil, "status"); code != 0 || !strings.Contains(said, "duplicate") {
				t.Errorf("status ends with %d and doesn't say what is compared:\n%s", code, said)
			}
			if code, said := says(t, place, nil, "rebuild", "--dry-run", "--diff"); code != 0 {
				t.Errorf("the rebuild ends with %d:\n%s", code, said)
			}
			if code, said := says(t, place, nil, "rebuild"); code != 0 {
				t.Fatalf("the rebuild ends with %d:\n%s", code, said)
			}
			same(t, "rebuilt", want, place.Boards(t))
			last.Terminate(t)
			wipe(t, place)
			place.Start(t)
			place.AwaitCaughtUp(t, within)
			same(t, "read again", want, place.Boards(t))
			place.Publish(t, ruled(r, 500, 2)...)
			place.AwaitCaughtUp(t, within)
			place.TerminateAll(t)
			place.Check(t)
		})
	}
}

// same holds boards against what they were.
func same(t *testing.T, once string, was, is map[string]map[string]uint64) {
	t.Helper()
	d := &oracle.Differences{}
	d.Boards(was, is)
	if text := d.String(); text != "" {
		t.Errorf("once %s, the boards aren't what they were:\n%s", once, text)
	}
}

// wipe takes all that Redis has, while nobody runs.
func wipe(t *testing.T, place *harness.Place) {
	t.Helper()
	err := place.EachName(t.Context(), func(key, _ string) { place.RedisClient().Unlink(t.Context(), key) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryEventIsAccountedForWithDuplicates(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: map[string]string{"event.duplicates": "300"}})
	r := rand.New(rand.NewPCG(6, 6)) //nolint:gosec // a test's
	first := place.Start(t)
	place.Publish(t, repeating(r, 20_000, 3)...)
	place.AwaitCaughtUp(t, within)
	second := place.Start(t)
	second.AwaitReady(t, within)
	place.Publish(t, repeating(r, 20_000, 3)...)
	place.AwaitCaughtUp(t, within)
	first.Terminate(t)
	place.Publish(t, repeating(r, 5_000, 3)...)
	place.AwaitCaughtUp(t, within)
	second.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
	if n := place.Counted(); n.Duplicates == 0 || n.DeadLettered == 0 {
		t.Errorf("not every result was seen: %+v", n)
	}
}

func TestDuplicatesThatThereIsNoRoomForAreRefusedWithTheNumberThatFits(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: map[string]string{
		"event.duplicates": "30000", "event.duplicates_memory": "2MiB",
	}})
	if code, said := says(t, place, nil, "run"); code == 0 ||
		!strings.Contains(said, "30,000 records of 3 partitions take 3MiB, and event.duplicates_memory is 2MiB: that has room for 29,127 records; or set it to 3MiB") {
		t.Errorf("it ends with %d:\n%s", code, said)
	}
}
