package rebuild

import (
	"testing"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/harness"
)

func TestAConsumerThatDiedInASweepIsRebuiltIntoTheMiddleOfIt(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1, Settings: map[string]string{"piece_time": "500us"}})
	place.Publish(t, earned(80, 60_000, 40_000, 1)...)
	sweeps := 0
	for range 3 {
		c := place.Start(t)
		var at ledger.Position
		harness.Eventually(t, within, func() string {
			var err error
			if at, err = ledger.Parse(place.Ledger(t)[0]); err != nil || !at.Sweeping() {
				return "no sweep is under way"
			}
			return ""
		})
		c.Kill()
		<-c.Done()
		at, err := ledger.Parse(place.Ledger(t)[0])
		must(t, err)
		if at.Sweeping() {
			sweeps++
		}
		must(t, place.RedisClient().ZIncrBy(t.Context(), place.Key(window(t, place, "global", "weekly")), 25, "nobody").Err())
		said := startRebuild(t, place, "--diff").swapped()
		if !said.Swapped || said.differ() != 1 {
			t.Errorf("at %v it says %+v", at, said)
		}
		if is := place.Ledger(t)[0]; is != at.String() {
			t.Errorf("the ledger stood at %v, and stands at %s", at, is)
		}
		place.Publish(t, earned(81, 20_000, 40_000, 1)...)
	}
	if sweeps == 0 {
		t.Error("nobody died in a sweep")
	}
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.CheckBoards(t)
	place.CheckDeadLetters(t)
}
