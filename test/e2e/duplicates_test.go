package e2e

// Repeats count once, despite kills, a Redis that goes back and a rebuild. The oracle, which detects
// duplicates with its own code, verifies this.

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// repeating returns events of which many repeat one of the last few thousand. Some have no ids, some are bad,
// and some are fixed copies of bad ones.
func repeating(r *rand.Rand, n, partitions int) (all []*kgo.Record) {
	for i := range n {
		partition, member, id := r.IntN(partitions), r.IntN(3000), r.IntN(4)
		switch {
		case i%50 == 0: // the repeat counts, since the first one is not valid
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

func TestEveryEventIsAccountedForWithDuplicates(t *testing.T) {
	testenv.SlowEmbedded(t)
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
