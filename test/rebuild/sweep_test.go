package rebuild

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

func TestAConsumerThatDiedInASweepIsRebuiltIntoTheMiddleOfIt(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1, Settings: map[string]string{"piece_time": "500us"}})
	place.Publish(t, earned(80, 60_000, 40_000, 1)...)
	for range 3 {
		at := place.KillInSweep(t, within, harness.Sweep{
			Start: func() *harness.Consumer { return place.Start(t) },
			More:  func() []*kgo.Record { return earned(82, 60_000, 40_000, 1) },
		})
		must(t, place.RedisClient().ZIncrBy(t.Context(), place.KeyOf("nobody", window(t, place, "global", "weekly")), 25, "nobody").Err())
		said := startRebuild(t, place, "--diff").swapped()
		if !said.Swapped || said.differ() != 1 {
			t.Errorf("at %v it says %+v", at, said)
		}
		if is := place.Ledger(t)[0]; is != at.String() {
			t.Errorf("the ledger stood at %v, and stands at %s", at, is)
		}
		place.Publish(t, earned(81, 20_000, 40_000, 1)...)
	}
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.CheckBoards(t)
	place.CheckDeadLetters(t)
}
