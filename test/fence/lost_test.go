package fence

import (
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

// hangs stops Redis under traffic while an apply call is on its way, and returns after the consumer has given up that
// call. Redis executes it once it resumes.
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
		place.Redis.Resume() // it was between two apply calls
		events.More(t, 500)
	}
}

// A Redis that hangs loses answers: the worker gives up a call and sends it again. Redis receives both once it
// resumes.
func TestAnApplyWhoseAnswerIsLostIsSentAgainAndCountsOnce(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{
		"kafka.session_timeout": "60s", // no worker may lose its partition: see CheckCounts
	}})
	c := place.Start(t)
	events := hangs(t, place, c)
	place.Redis.Resume()
	events.Stop()
	place.AwaitCaughtUp(t, harness.Within)
	// The last answer may be lost, too: the worker knows that the piece counts only after sending it again.
	place.AwaitCommitted(t, harness.Within)
	place.Finish(t)
	place.CheckCounts(t)
}
