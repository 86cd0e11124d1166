package rediskinds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
)

// One master of several goes back in time, or loses all that it had, while the others go on:
// its shards are read again from where they stand then, and the others have it all already.
func TestAMasterThatGoesBackAloneOrLosesAllIsBroughtToWhereTheOthersAre(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t)
	place := newPlace(t, c.Look(t), map[string]string{
		"redis.addresses": strings.Join(c.Addresses(), ","), "redis.shards": "6", "redis.cluster": "true",
	})
	consumer := place.Start(t)
	place.Publish(t, earned(1, 4000)...)
	place.AwaitCaughtUp(t, within)
	back := c.Nodes[1] // the lines are on the first one
	dump := back.Dump()

	for name, dump := range map[string][]byte{"goes back": dump, "loses all": nil} {
		counted := place.Counting(t)
		stop := traffic(t, place)
		harness.Eventually(t, within, func() string { // in every shard: else there is nothing to go back from
			if place.Counting(t) == counted {
				return "nothing of the traffic is counted"
			}
			return ""
		})
		moves := consumer.Log.Count("the ledger has moved: going on from what it says")
		back.Kill()
		awaitShardAway(t, place, back.Addr())
		back.Restart(dump)
		back.Await(t, "cluster info", func(info string) bool { return strings.Contains(info, "cluster_state:ok") })
		harness.Eventually(t, within, func() string {
			if consumer.Log.Count("the ledger has moved: going on from what it says") == moves {
				return "nothing of it is in the log"
			}
			return ""
		})
		stop()
		place.AwaitCaughtUp(t, within)
		place.CheckBoards(t)
		t.Logf("a master that %s: checked", name)
	}
	finish(t, place)
}

// awaitShardAway waits until status shows that a worker waits for a shard, and for which master.
func awaitShardAway(t *testing.T, place *harness.Place, master string) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		lines, err := place.RedisClient().HGetAll(t.Context(), place.Key("workers")).Result()
		if err != nil {
			return err.Error()
		}
		for _, line := range lines {
			if strings.Contains(line, `"waiting"`) && strings.Contains(line, "shard ") && strings.Contains(line, master) {
				return ""
			}
		}
		return fmt.Sprintf("no worker says that it waits for a shard on %s", master)
	})
}
