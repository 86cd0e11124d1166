package rediskinds

import (
	"maps"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
)

const slots = 16384

// cluster is a Redis Cluster whose places have the least rights.
type cluster struct{ *harness.Cluster }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{harness.StartCluster(t)}
}

// place returns a place whose consumers have the least rights on every node.
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

func TestASlotThatMovesAndFailoversOfAClusterLoseNothingAndCountNothingTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := c.place(t, map[string]string{"redis.addresses": c.Nodes[0].Addr(), "redis.cluster": "true"})
	slot, err := c.Nodes[0].C.ClusterKeySlot(t.Context(), place.Key("ledger")).Result()
	harness.Must(t, err)
	owner, other, last := c.Nodes[slot*3/slots], c.Nodes[0], c.Nodes[2]
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)

	api := place.Serve(t)
	awaitPage(t, place, api)

	t.Log("the slot moves under traffic, and to where the replica is")
	stop := place.Traffic(t, 2).Stop
	if owner == last {
		c.Move(t, place.Key("ledger"), last, other)
		owner = other
	}
	c.Move(t, place.Key("ledger"), owner, last)
	stop()
	place.AwaitCaughtUp(t, within)
	reads(t, place)

	t.Log("an orderly failover under traffic")
	stop = place.Traffic(t, 2).Stop
	harness.Must(t, c.Replica.C.ClusterFailover(t.Context()).Err())
	c.AwaitMaster(t, c.Replica, c.Nodes...)
	stop()
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, api)

	t.Log("the master dies under traffic")
	last.Await(t, "info replication", func(info string) bool {
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
	stop = place.Traffic(t, 2).Stop
	c.Replica.Kill()
	c.AwaitMaster(t, last, c.Nodes...)
	stop()
	place.AwaitCaughtUp(t, within)
	reads(t, place)
	awaitPage(t, place, api)
	place.Finish(t)
	for _, n := range c.Nodes {
		nothingRefused(t, n.C)
	}
}
