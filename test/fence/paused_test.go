package fence

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/standings/standings/test/harness"
)

// owns waits until a consumer's latest generation has so many partitions.
func owns(t *testing.T, c *harness.Consumer, partitions int) {
	t.Helper()
	harness.Eventually(t, harness.Within, func() string {
		has := -1
		for _, line := range c.Log.Lines() {
			if line.Message == "generation began" {
				n, _ := line.Fields["partitions"].(float64)
				has = int(n)
			}
		}
		if has != partitions {
			return fmt.Sprintf("consumer %d has %d partitions, want %d", c.Number, has, partitions)
		}
		return ""
	})
}

func TestAPausedOwnerThatWakesAfterItsPartitionMovedAddsNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	sleeper, other := place.Start(t), place.Start(t)
	owns(t, sleeper, 1)
	owns(t, other, 1)
	// Asleep in the middle of whatever it does, mostly of a sweep.
	place.Publish(t, harness.Earned(10, 60_000, 40_000, 2)...)
	harness.Eventually(t, harness.Within, func() string {
		if at := place.Ledger(t); at[0] <= "0" && at[1] <= "0" { // "" or "0"
			return "nothing is counted yet"
		}
		return ""
	})
	sleeper.Signal(t, syscall.SIGSTOP)
	owns(t, other, 2)
	place.AwaitCaughtUp(t, harness.Within)
	place.Publish(t, harness.Earned(20, 2000, 500, 2)...)
	place.AwaitCaughtUp(t, harness.Within)
	sleeper.Signal(t, syscall.SIGCONT)
	owns(t, sleeper, 1)
	owns(t, other, 1)
	place.Publish(t, harness.Earned(30, 2000, 500, 2)...)
	// What was applied by a call whose answer came in the sleep nobody has counted as
	// applied: the standings are exact, and the counters as good as is known.
	place.Finish(t)
}
