package e2e

// Repeats count once, through kills, a Redis that goes back and a rebuild: against the oracle,
// which finds them by code of its own.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
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

func TestRepeatsCountOnceThroughKillsAndARebuild(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{
		"event.duplicates": "4000", "piece_time": "500us", "fold_memory": "32MiB",
	}})
	r := rand.New(rand.NewPCG(5, 5)) //nolint:gosec // a test's
	more := func() []*kgo.Record { return repeating(r, 30_000, 2) }
	place.Publish(t, more()...)
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
	place.AwaitCaughtUp(t, within)
	successor.Log.Await(t, within, "looked through records for duplicates")
	place.Publish(t, more()...)
	place.AwaitCaughtUp(t, within)
	end()
	place.Check(t)
	if n := successor.Terminate(t); n.Duplicates == 0 || n.Sum() != n.Consumed {
		t.Errorf("the successor ends with %+v", n)
	}
	place.Publish(t, repeating(r, 2000, 2)...)
	last := place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.Check(t)
	if code, said := says(t, place, nil, "status"); code != 0 || !strings.Contains(said, "duplicate") {
		t.Errorf("status ends with %d and doesn't say what is compared:\n%s", code, said)
	}
	if code, said := says(t, place, nil, "rebuild", "--dry-run", "--diff"); code != 0 {
		t.Errorf("the rebuild ends with %d:\n%s", code, said)
	}
	if code, said := says(t, place, nil, "rebuild"); code != 0 {
		t.Fatalf("the rebuild ends with %d:\n%s", code, said)
	}
	place.AwaitCaughtUp(t, within)
	place.Check(t)
	last.Terminate(t)
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
