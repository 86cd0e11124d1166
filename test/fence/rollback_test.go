package fence

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// After the last rollback no event follows: an idle worker must detect it.
func TestARedisThatGoesBackInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	events := place.Traffic(t, 2)
	for range 3 {
		place.AwaitBegun(t, harness.Within)
		older := place.Redis.Dump()
		events.More(t, 1000)
		place.Redis.Restart(older)
	}
	older := place.Redis.Dump()
	events.More(t, 1000)
	events.Stop()
	place.AwaitCaughtUp(t, harness.Within)
	place.Redis.Restart(older)
	c.Log.Await(t, harness.Within, "the ledger moved")
	place.Finish(t)
}

// One replica has the number of shards of a reshard, and one that starts has that of the configuration, which nobody has
// changed since. Whichever records its number first, both count with that.
func TestReplicasUseOneNumberOfShardsAfterRedisIsLost(t *testing.T) {
	for number, paused := range map[string]bool{"3": false, "1": true} {
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t, harness.Options{Partitions: 2})
			a := place.Start(t)
			events := place.Traffic(t, 2)
			place.AwaitBegun(t, harness.Within)
			events.More(t, 1000)
			place.Command(t, "reshard", "--to", "3")
			a.Log.Await(t, harness.Within, "the boards have another number of shards")
			recorded := func(number string) {
				harness.Eventually(t, harness.Within, func() string {
					if n := place.RedisClient().Get(t.Context(), place.Prefix+":{0}:shards").Val(); n != number {
						return "the number of shards is " + n
					}
					return ""
				})
			}
			if paused {
				a.Signal(t, syscall.SIGSTOP)
			}
			harness.Must(t, place.RedisClient().FlushAll(t.Context()).Err())
			if !paused {
				recorded(number)
			}
			b := place.Start(t)
			if paused {
				recorded(number)
				a.Signal(t, syscall.SIGCONT)
				harness.Eventually(t, harness.Within, func() string {
					if n := a.Log.Count("the boards have another number of shards; going on with that"); n != 2 {
						return fmt.Sprintf("it has changed the number of shards %d times", n)
					}
					return ""
				})
			} else {
				b.Log.Await(t, harness.Within, "redis.shards is 1 in the configuration but 3 in Redis")
			}
			place.Settings["redis.shards"] = number
			events.More(t, 1000)
			events.Stop()
			place.AwaitCaughtUp(t, harness.Within)
			place.Finish(t)
		})
	}
}

func TestAWipedRedisWhoseLogNoLongerReachesBackHaltsOrGoesOnIncomplete(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	records := harness.Earned(45, 1000, 300, 2)
	place.Produce(t, records...)
	place.AwaitCaughtUp(t, harness.Within)
	const gone = 200
	place.DeleteBefore(t, 1, gone)
	if err := place.RedisClient().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	halt := c.Log.AwaitHalt(t, harness.Within, "gap")
	if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, fmt.Sprintf("%s/1 begins only at offset %d", place.Topic, gone)) {
		t.Errorf("the halt says %q", what)
	}
	if at := place.Ledger(t); len(at) != 0 {
		t.Errorf("a halted consumer has written a ledger: %v", at)
	}
	awaitLine(t, place, 1, "halted", "gap")
	c.Terminate(t)

	expectKept(t, place, records, 1, gone)
	place.Settings["on_gap"] = "continue"
	place.Start(t)
	place.AwaitCaughtUp(t, harness.Within)
	place.CheckBoards(t)
	for _, period := range []string{"weekly", "yearly"} {
		out := place.Command(t, "top", "global", period, "--json")
		var top struct{ Incomplete []string }
		if err := json.Unmarshal(out, &top); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if want := place.Topic + "/1"; len(top.Incomplete) != 1 || top.Incomplete[0] != want {
			t.Errorf("consumer top of the %s board says %q is incomplete, want %s", period, top.Incomplete, want)
		}
	}
	place.TerminateAll(t)
}

// expectKept expects the records that Kafka still has: those of a partition before an offset are gone.
func expectKept(t *testing.T, place *harness.Place, records []*kgo.Record, partition int32, from int64) {
	t.Helper()
	for _, r := range records {
		if r.Partition != partition || r.Offset >= from {
			place.Expect(t, r)
		}
	}
}

// awaitLine waits until the status entry of a partition has a state and a reason.
func awaitLine(t *testing.T, place *harness.Place, partition int, state, reason string) {
	t.Helper()
	harness.Eventually(t, harness.Within, func() string {
		text := place.Hash(t, "workers")[fmt.Sprintf("%s/%d", place.Topic, partition)]
		var line struct{ State, Reason, Remedy string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return fmt.Sprintf("the line of partition %d is %q", partition, text)
		}
		if line.State != state || line.Reason != reason || state == "halted" && line.Remedy == "" {
			return fmt.Sprintf("the line of partition %d is %s, want %s for %q", partition, text, state, reason)
		}
		return ""
	})
}
