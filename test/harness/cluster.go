package harness

// This file starts a cluster of Redis processes: three masters with a third of the slots each, and a
// replica of the last master.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded/child"
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

// StartNode starts a node of a cluster without slots.
func StartNode(t testing.TB) *Node {
	t.Helper()
	n := &Node{RedisServer: testenv.LocalRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")}
	n.C = n.Client(t)
	id, err := n.C.Do(t.Context(), "cluster", "myid").Text()
	Must(t, err)
	n.ID = id
	return n
}

// StartCluster starts a cluster, and waits until all nodes know it.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range 3 {
		n := StartNode(t)
		Must(t, n.C.ClusterAddSlotsRange(t.Context(), i*slots/3, (i+1)*slots/3-1).Err())
		c.Nodes = append(c.Nodes, n)
	}
	c.Replica = StartNode(t)
	all := c.All()
	host, port, _ := net.SplitHostPort(all[0].Addr())
	for _, n := range all[1:] {
		Must(t, n.C.ClusterMeet(t.Context(), host, port).Err())
	}
	for _, n := range all {
		n.Await(t, "cluster info", func(info string) bool {
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:4")
		})
	}
	Must(t, c.Replica.C.ClusterReplicate(t.Context(), c.Nodes[2].ID).Err())
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
	t.Cleanup(func() { Must(t, client.Close()) })
	return client
}

// Move moves the slot of a key with all its keys, as redis-cli's reshard does.
func (c *Cluster) Move(t testing.TB, key string, from, to *Node) {
	t.Helper()
	ctx := t.Context()
	slot, err := from.C.ClusterKeySlot(ctx, key).Result()
	Must(t, err)
	Must(t, to.C.Do(ctx, "cluster", "setslot", slot, "importing", from.ID).Err())
	Must(t, from.C.Do(ctx, "cluster", "setslot", slot, "migrating", to.ID).Err())
	host, port, _ := net.SplitHostPort(to.Addr())
	all, err := from.C.ClusterCountKeysInSlot(ctx, int(slot)).Result()
	Must(t, err)
	// For a while some keys are on the old node and some on the new one.
	pause := min(100*time.Millisecond, 5*time.Second/time.Duration(max(all, 1)))
	moved := 0
	for {
		keys, err := from.C.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		Must(t, err)
		if len(keys) == 0 {
			break
		}
		Must(t, from.C.Do(ctx, "migrate", host, port, keys[0], 0, 5000).Err())
		moved++
		time.Sleep(pause)
	}
	for _, n := range []*Node{to, from, c.Nodes[0], c.Nodes[1], c.Nodes[2]} {
		Must(t, n.C.Do(ctx, "cluster", "setslot", slot, "node", to.ID).Err())
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

// StartSentinel starts a Sentinel that watches the master at an address under a name, and detects its loss
// within a second. lines are added to its configuration. It returns its address. The Sentinel ends with the
// test.
func StartSentinel(t testing.TB, name, master string, quorum int, lines ...string) string {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	host, masterPort, _ := strings.Cut(master, ":")
	all := append([]string{
		fmt.Sprintf("port %d", port), "bind 127.0.0.1", "dir " + dir,
		fmt.Sprintf("sentinel monitor %s %s %s %d", name, host, masterPort, quorum),
		"sentinel down-after-milliseconds " + name + " 1000",
		"sentinel failover-timeout " + name + " 5000",
	}, lines...)
	conf := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(conf, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.RedisProgram(t), conf, "--sentinel")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	process, err := child.Start(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("Sentinel %d saw:\n%s", port, child.Tail(log.Name(), 60))
		}
	})
	select {
	case <-process.Done():
		t.Fatalf("a Sentinel ended: %v: %s", process.Err(), child.Tail(log.Name(), 5))
	case <-time.After(100 * time.Millisecond): // it reports wrong settings at once
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}
