package rediskinds

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

const slots = 16384

// cluster is one whose places have the least rights.
type cluster struct{ *harness.Cluster }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{harness.StartCluster(t)}
}

// place is one whose consumers have the least rights on every node.
func (c *cluster) place(t *testing.T, settings map[string]string) *harness.Place {
	t.Helper()
	place := newPlace(t, c.Look(t), as("standings"))
	maps.Copy(place.Settings, settings)
	for _, n := range c.All() {
		user(t, n.C, "standings", place.Prefix, append(leastRights(t, "consumer"), leastRights(t, "cluster")...)...)
	}
	return place
}

func TestAConsumerRunsOnACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	wholeRun(t, c.place(t, map[string]string{"redis.addresses": strings.Join(c.Addresses(), ",")}))
	for _, n := range c.All() {
		nothingRefused(t, n.C)
	}
}

func TestBoardsOfAClusterAreRebuiltUnderTrafficComparedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := c.place(t, map[string]string{"redis.addresses": strings.Join(c.Addresses(), ",")})
	slot, err := c.Nodes[0].C.ClusterKeySlot(t.Context(), place.Key("ledger")).Result()
	must(t, err)
	owner, other := c.Nodes[slot*3/slots].C, place.Prefix+"2"
	run := func(code int, says string, args ...string) {
		t.Helper()
		rules := append(leastRights(t, "cluster"), leastRights(t, args[0])...)
		if args[0] == "rebuild" {
			rules = append(rules, leastRights(t, "consumer")...)
		}
		for _, n := range c.All() {
			user(t, n.C, "someone", place.Prefix, rules...)
		}
		if got := command(t, place, as("someone"), args...); got.code != code || !strings.Contains(got.stdout, says) {
			t.Errorf("consumer %v doesn't end with %d and show %q, but with %d: %s\n%s", args, code, says, got.code, got.stdout, got.stderr)
		}
	}
	tamper := func(prefix string) {
		t.Helper()
		for name := range place.Hash(t, "windows") {
			must(t, owner.ZIncrBy(t.Context(), prefix+":{0}:"+name, 1000, "m7").Err())
		}
	}
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)

	tamper(place.Prefix)
	stop := traffic(t, place)
	run(0, "m7", "rebuild", "--diff")
	stop()
	finish(t, place)

	must(t, owner.Del(t.Context(), place.Key("workers")).Err()) // else it is in use for 30 s
	all, err := owner.Keys(t.Context(), place.Prefix+":*").Result()
	must(t, err)
	for _, key := range all {
		must(t, owner.Copy(t.Context(), key, strings.Replace(key, place.Prefix, other, 1), 0, false).Err())
	}
	run(0, "", "diff", "--with", other)
	tamper(other)
	run(1, "m7", "diff", "--with", other)
	run(0, "", "drop", "--prefix", place.Prefix, "--force", "--yes")
	if left := owner.Keys(t.Context(), place.Prefix+":*").Val(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := owner.Keys(t.Context(), other+":*").Val(); len(left) != len(all) {
		t.Errorf("the other prefix has %v", left)
	}
	for _, n := range c.All() {
		nothingRefused(t, n.C)
	}
}

func TestASlotThatMovesAndFailoversOfAClusterLoseNothingAndCountNothingTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := c.place(t, map[string]string{"redis.addresses": c.Nodes[0].Addr(), "redis.cluster": "true"})
	slot, err := c.Nodes[0].C.ClusterKeySlot(t.Context(), place.Key("ledger")).Result()
	must(t, err)
	owner, other, last := c.Nodes[slot*3/slots], c.Nodes[0], c.Nodes[2]
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)

	api := place.Serve(t)
	awaitPage(t, place, api)

	t.Log("the slot moves under traffic, and to where the replica is")
	stop := traffic(t, place)
	if owner == last {
		c.Move(t, place.Key("ledger"), last, other)
		owner = other
	}
	c.Move(t, place.Key("ledger"), owner, last)
	stop()
	place.AwaitCaughtUp(t, within)
	reads(t, place)

	t.Log("an orderly failover under traffic")
	stop = traffic(t, place)
	must(t, c.Replica.C.ClusterFailover(t.Context()).Err())
	c.AwaitMaster(t, c.Replica, c.Nodes...)
	stop()
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, api)

	t.Log("the master dies under traffic")
	last.Await(t, "info replication", func(info string) bool {
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
	stop = traffic(t, place)
	c.Replica.Kill()
	c.AwaitMaster(t, last, c.Nodes...)
	stop()
	// And not when a minute is over, after which the client would look by itself.
	harness.Eventually(t, 30*time.Second, func() string { return place.Behind(t.Context()) })
	reads(t, place)
	awaitPage(t, place, api)
	finish(t, place)
	for _, n := range c.Nodes {
		nothingRefused(t, n.C)
	}
}
