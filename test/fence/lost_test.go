package fence

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestAnApplyWhoseAnswerIsLostIsSentAgainAndCountsOnce(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	random := rand.New(rand.NewPCG(5, 5))
	fates := map[string]int{}
	network := startProxy(t, server.Addr(), func(int, []string) fate {
		switch n := random.IntN(12); {
		case n < 2:
			fates["hung up"]++
			return fate{lost: hangUp}
		case n < 3:
			fates["silent"]++
			return fate{lost: silence}
		case n < 4: // arrives after it was given up and sent again
			fates["late"]++
			return fate{held: after(1500 * time.Millisecond)}
		case n < 5: // so late that others came in between
			fates["very late"]++
			return fate{held: after(4 * time.Second)}
		}
		return fate{}
	})
	place := newPlace(t, harness.Options{Redis: server, Partitions: 2, Settings: map[string]string{
		"redis.addresses": network.address, "piece_time": "500us",
		"kafka.session_timeout": "30s", // who loses its partitions can't tell what became of a call: see CheckCounts
	}})
	place.Publish(t, earned(6, 1500, 1000, 2)...)
	c := place.Start(t)
	place.AwaitCaughtUp(t, within)
	// The last answer may be lost, too: until it has sent that piece again it doesn't
	// know that it counts.
	place.AwaitCommitted(t, within)
	c.Terminate(t)
	// What is still on its way arrives now, and finds the ledger moved.
	harness.Eventually(t, within, func() string { return network.waiting() })
	place.Check(t)
	place.CheckCounts(t)
	t.Logf("%d applies; %v", network.Applies(), fates)
	for _, kind := range []string{"hung up", "silent", "late", "very late"} {
		if fates[kind] == 0 {
			t.Errorf("no apply of %d was %s", network.Applies(), kind)
		}
	}
}

// A consumer dies with a call on its way that is still in order. Its successor is
// the one who finds the ledger moved, and what the dead one has sent counts.
func TestALateCallOfADeadOwnerCountsIfItIsStillInOrder(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	network := startProxy(t, server.Addr(), func(int, []string) fate { return fate{} })
	place := newPlace(t, harness.Options{Redis: server, Settings: map[string]string{
		"redis.addresses": network.address, "redis.timeout": "60s", "piece_time": "500us",
		"redis.shards": "1", // so that the dead owner's call and its successor's are of the same one
	}})
	place.Publish(t, one(0, "first", 1))
	dead := place.Start(t)
	place.AwaitCaughtUp(t, within) // so that Redis knows the script

	gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
	arrived := make(chan int, len(gates))
	network.rule(func(number int, _ []string) fate {
		if number <= len(gates) {
			arrived <- number
			return fate{held: gates[number-1]}
		}
		return fate{}
	})
	place.Publish(t, earned(7, 4000, 3000, 1)...)
	awaitApply(t, arrived, 1)
	dead.Kill()
	place.Publish(t, earned(8, 4000, 3000, 1)...) // for a batch that ends elsewhere
	successor := place.Start(t)
	awaitApply(t, arrived, 2)

	before := place.Ledger(t)[0]
	close(gates[0])
	harness.Eventually(t, within, func() string {
		if now := place.Ledger(t)[0]; now == before {
			return "the dead owner's call hasn't moved the ledger from " + before
		}
		return ""
	})
	close(gates[1])
	successor.Log.Await(t, within, "the ledger has moved")
	finish(t, place)
}

func awaitApply(t *testing.T, arrived <-chan int, want int) {
	t.Helper()
	select {
	case number := <-arrived:
		if number != want {
			t.Fatalf("apply %d came, and %d was awaited", number, want)
		}
	case <-time.After(within):
		t.Fatalf("apply %d didn't come within %v", want, within)
	}
}
