package fence

import (
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

// hangs stops Redis under traffic, so that a call that applies is on its way, until the consumer has
// given that call up. Redis carries it out once it goes on.
func hangs(t *testing.T, place *harness.Place, c *harness.Consumer) (events *harness.Traffic) {
	t.Helper()
	events = place.Traffic(t, 2)
	events.More(t, 500)
	place.AwaitBegun(t, harness.Within)
	for until := time.Now().Add(harness.Within); ; {
		before := said(c, "apply")
		place.Redis.Pause()
		for again := time.Now().Add(20 * time.Second); time.Now().Before(again); time.Sleep(50 * time.Millisecond) {
			if said(c, "apply") > before {
				return events
			}
		}
		if time.Now().After(until) {
			t.Fatalf("it gives no call up that applies; its log ends with\n%s", c.Log.Tail(5))
		}
		place.Redis.Resume() // it was between two calls that apply
		events.More(t, 500)
	}
}

// A Redis that hangs loses answers: the worker gives a call up and sends it again, and Redis carries out
// both once it goes on.
func TestAnApplyWhoseAnswerIsLostIsSentAgainAndCountsOnce(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{
		"kafka.session_timeout": "60s", // who loses its partitions can't tell what became of a call: see CheckCounts
	}})
	c := place.Start(t)
	events := hangs(t, place, c)
	place.Redis.Resume()
	events.Stop()
	place.AwaitCaughtUp(t, harness.Within)
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
	place := newPlace(t, harness.Options{Partitions: 2})
	dead := place.Start(t)
	events := hangs(t, place, dead)
	dead.Kill()
	place.Redis.Resume()
	place.Start(t)
	events.Stop()
	place.Finish(t)
}
