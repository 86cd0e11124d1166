package fence

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

// The consumer is killed as soon as all events count, mostly before it has committed them.
func TestACrashBetweenApplyAndCommitCountsNothingTwice(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Publish(t, harness.Earned(1, 3000, 400, 2)...)
	first := place.Start(t)
	place.AwaitCaughtUp(t, harness.Within)
	first.Kill()
	// If no event follows, the next consumer commits for the dead one.
	idle := place.Start(t)
	place.AwaitCommitted(t, harness.Within)
	if counts := idle.Terminate(t); counts.Consumed != 0 {
		t.Errorf("without events it counted %+v", counts)
	}
	late := harness.Earned(2, 500, 400, 2)
	place.Publish(t, late...)
	second := place.Start(t)
	place.AwaitCaughtUp(t, harness.Within)
	counts := second.Terminate(t)
	place.Check(t)
	if counts.Consumed != int64(len(late)) || counts.Repeated != 0 {
		t.Errorf("the second consumer read other events than the %d after the ledger: %+v", len(late), counts)
	}
	place.CheckCommitted(t)
}
