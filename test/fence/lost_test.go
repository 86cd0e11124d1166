package fence

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

// A Redis that hangs loses answers: the worker gives a call up and sends it again, and Redis carries out
// both once it goes on.
func TestAnApplyWhoseAnswerIsLostIsSentAgainAndCountsOnce(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{
		"kafka.session_timeout": "30s", // who loses its partitions can't tell what became of a call: see CheckCounts
	}})
	c := place.Start(t)
	place.Publish(t, harness.Earned(6, 1500, 1000, 2)...)
	place.AwaitCaughtUp(t, harness.Within)
	for round := range 3 {
		place.Redis.Pause()
		place.Publish(t, harness.Earned(uint64(7+round), 1500, 1000, 2)...)
		says(t, c, "apply")
		place.Redis.Resume()
		place.AwaitCaughtUp(t, harness.Within)
	}
	// The last answer may be lost, too: until it has sent that piece again it doesn't
	// know that it counts.
	place.AwaitCommitted(t, harness.Within)
	place.Finish(t)
	place.CheckCounts(t)
}

// A consumer dies with a call on its way that is still in order. Its successor finds that the ledger
// moved, and what the dead one has sent counts.
func TestALateCallOfADeadOwnerCountsIfItIsStillInOrder(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	dead := place.Start(t)
	place.Publish(t, harness.Earned(6, 1500, 1000, 1)...)
	place.AwaitCaughtUp(t, harness.Within)
	place.Redis.Pause()
	late := harness.Earned(7, 4000, 3000, 1)
	place.Publish(t, late...)
	says(t, dead, "apply")
	dead.Kill()
	place.Redis.Resume()
	// Nobody else is there to count.
	harness.Eventually(t, harness.Within, func() string {
		if place.Ledger(t)[0] == "1500" {
			return "the dead owner's call hasn't moved the ledger"
		}
		return ""
	})
	place.Start(t)
	place.Finish(t)
}
