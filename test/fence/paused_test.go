package fence

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/standings/standings/test/harness"
)

// owns waits until a consumer's latest generation has this number of partitions.
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
	// Stopped at any point, mostly during a sweep.
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
	// If an answer arrived while its consumer was stopped, no consumer counts the call as applied: the standings are
	// exact, and the counters are as good as the consumers' knowledge.
	place.Finish(t)
}
