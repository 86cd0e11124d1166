package harness

// This file starts a cluster of Redis processes: three masters with a third of the slots each, and a
// replica of the last master.

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/testenv"
)

const (
	slots         = 16384
	clusterWithin = 90 * time.Second
)

// Node is a node of a cluster.
type Node struct {
	*testenv.RedisServer

	C  *redis.Client
	ID string
}

// Cluster is three masters with a third of the slots each, and a replica of the last master.
type Cluster struct {
	Nodes   []*Node
	Replica *Node
}

func clusterMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// StartNode starts a node of a cluster without slots.
func StartNode(t testing.TB) *Node {
	t.Helper()
	n := &Node{RedisServer: testenv.LocalRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")}
	n.C = n.Client(t)
	id, err := n.C.Do(t.Context(), "cluster", "myid").Text()
	clusterMust(t, err)
	n.ID = id
	return n
}

// StartCluster starts a cluster, and waits until all nodes know it.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range 3 {
		n := StartNode(t)
		clusterMust(t, n.C.ClusterAddSlotsRange(t.Context(), i*slots/3, (i+1)*slots/3-1).Err())
		c.Nodes = append(c.Nodes, n)
	}
	c.Replica = StartNode(t)
	all := c.All()
	host, port, _ := net.SplitHostPort(all[0].Addr())
	for _, n := range all[1:] {
		clusterMust(t, n.C.ClusterMeet(t.Context(), host, port).Err())
	}
	for _, n := range all {
		n.Await(t, "cluster info", func(info string) bool {
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:4")
		})
	}
	clusterMust(t, c.Replica.C.ClusterReplicate(t.Context(), c.Nodes[2].ID).Err())
	c.Replica.Await(t, "info replication", func(info string) bool { return strings.Contains(info, "master_link_status:up") })
	for _, n := range all {
		n.Await(t, "cluster nodes", func(nodes string) bool { return strings.Contains(nodes, "slave "+c.Nodes[2].ID) })
	}
	return c
}

// Await repeats a command on a node until the answer is right.
func (n *Node) Await(t testing.TB, command string, right func(answer string) bool) {
	t.Helper()
	words := []any{}
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	Eventually(t, clusterWithin, func() string {
		answer, err := n.C.Do(t.Context(), words...).Text()
		if err != nil || !right(answer) {
			return fmt.Sprintf("%s at %s: %s %v", command, n.Addr(), answer, err)
		}
		return ""
	})
}

// All returns the masters and the replica.
func (c *Cluster) All() []*Node { return append(c.Nodes[:3:3], c.Replica) }

// Addresses returns the addresses of the initial masters.
func (c *Cluster) Addresses() []string {
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.Addr())
	}
	return all
}

// Look returns a client of the cluster.
func (c *Cluster) Look(t testing.TB) redis.UniversalClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addresses(), ClusterStateReloadInterval: time.Second})
	t.Cleanup(func() { clusterMust(t, client.Close()) })
	return client
}

// Move moves the slot of a key with all its keys, as redis-cli's reshard does.
func (c *Cluster) Move(t testing.TB, key string, from, to *Node) {
	t.Helper()
	ctx := t.Context()
	slot, err := from.C.ClusterKeySlot(ctx, key).Result()
	clusterMust(t, err)
	clusterMust(t, to.C.Do(ctx, "cluster", "setslot", slot, "importing", from.ID).Err())
	clusterMust(t, from.C.Do(ctx, "cluster", "setslot", slot, "migrating", to.ID).Err())
	host, port, _ := net.SplitHostPort(to.Addr())
	all, err := from.C.ClusterCountKeysInSlot(ctx, int(slot)).Result()
	clusterMust(t, err)
	// For a while some keys are on the old node and some on the new one.
	pause := min(100*time.Millisecond, 5*time.Second/time.Duration(max(all, 1)))
	moved := 0
	for {
		keys, err := from.C.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		clusterMust(t, err)
		if len(keys) == 0 {
			break
		}
		clusterMust(t, from.C.Do(ctx, "migrate", host, port, keys[0], 0, 5000).Err())
		moved++
		time.Sleep(pause)
	}
	for _, n := range []*Node{to, from, c.Nodes[0], c.Nodes[1], c.Nodes[2]} {
		clusterMust(t, n.C.Do(ctx, "cluster", "setslot", slot, "node", to.ID).Err())
	}
	t.Logf("%d keys of slot %d have moved", moved, slot)
}

// AwaitMaster waits until every living node considers a node a master with slots.
func (c *Cluster) AwaitMaster(t testing.TB, master *Node, living ...*Node) {
	t.Helper()
	began := time.Now()
	for _, n := range living {
		n.Await(t, "cluster nodes", func(nodes string) bool {
			for line := range strings.Lines(nodes) {
				if f := strings.Fields(line); f[0] == master.ID && strings.Contains(f[2], "master") && len(f) > 8 {
					return true
				}
			}
			return false
		})
		n.Await(t, "cluster info", func(info string) bool { return strings.Contains(info, "cluster_state:ok") })
	}
	t.Logf("%s is the master after %v", master.Addr(), time.Since(began).Round(time.Millisecond))
}
