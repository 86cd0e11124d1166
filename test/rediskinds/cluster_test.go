package rediskinds

import (
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/testenv"
	"github.com/standings/standings/test/harness"
)

const slots = 16384

// node is a node of a cluster.
type node struct {
	*testenv.RedisServer
	c  *redis.Client
	id string
}

// cluster is three masters with a third of the slots each, and a replica of the last.
type cluster struct {
	nodes   []*node
	replica *node
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{RedisServer: testenv.LocalRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")}
	n.c = n.Client(t)
	id, err := n.c.Do(t.Context(), "cluster", "myid").Text()
	must(t, err)
	n.id = id
	return n
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	for i := range 3 {
		n := newNode(t)
		must(t, n.c.ClusterAddSlotsRange(t.Context(), i*slots/3, (i+1)*slots/3-1).Err())
		c.nodes = append(c.nodes, n)
	}
	c.replica = newNode(t)
	all := c.all()
	host, port, _ := net.SplitHostPort(all[0].Addr())
	for _, n := range all[1:] {
		must(t, n.c.ClusterMeet(t.Context(), host, port).Err())
	}
	for _, n := range all {
		n.await(t, "cluster info", func(info string) bool {
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:4")
		})
	}
	must(t, c.replica.c.ClusterReplicate(t.Context(), c.nodes[2].id).Err())
	c.replica.await(t, "info replication", func(info string) bool { return strings.Contains(info, "master_link_status:up") })
	for _, n := range all {
		n.await(t, "cluster nodes", func(nodes string) bool { return strings.Contains(nodes, "slave "+c.nodes[2].id) })
	}
	return c
}

// await asks a node until its answer is right.
func (n *node) await(t *testing.T, command string, right func(answer string) bool) {
	t.Helper()
	words := []any{}
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	harness.Eventually(t, within, func() string {
		answer, err := n.c.Do(t.Context(), words...).Text()
		if err != nil || !right(answer) {
			return fmt.Sprintf("%s at %s: %s %v", command, n.Addr(), answer, err)
		}
		return ""
	})
}

func (c *cluster) all() []*node { return append(c.nodes[:3:3], c.replica) }

// place is one whose consumers have the least rights on every node.
func (c *cluster) place(t *testing.T, settings map[string]string) *harness.Place {
	t.Helper()
	place := newPlace(t, c.look(t), as("standings"))
	maps.Copy(place.Settings, settings)
	for _, n := range c.all() {
		user(t, n.c, "standings", place.Prefix, append(leastRights(t, "consumer"), leastRights(t, "cluster")...)...)
	}
	return place
}

func (c *cluster) addresses() []string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.Addr())
	}
	return all
}

func (c *cluster) look(t *testing.T) redis.UniversalClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addresses(), ClusterStateReloadInterval: time.Second})
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// move moves the slot of a shard with all of its keys, as redis-cli's reshard does.
func (c *cluster) move(t *testing.T, place *harness.Place, from, to *node) {
	t.Helper()
	ctx := t.Context()
	slot, err := from.c.ClusterKeySlot(ctx, place.Key("ledger")).Result()
	must(t, err)
	must(t, to.c.Do(ctx, "cluster", "setslot", slot, "importing", from.id).Err())
	must(t, from.c.Do(ctx, "cluster", "setslot", slot, "migrating", to.id).Err())
	host, port, _ := net.SplitHostPort(to.Addr())
	moved := 0
	for {
		keys, err := from.c.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		must(t, err)
		if len(keys) == 0 {
			break
		}
		must(t, from.c.Do(ctx, "migrate", host, port, keys[0], 0, 5000).Err())
		moved++
		time.Sleep(100 * time.Millisecond) // for a while some keys are here and some there
	}
	for _, n := range []*node{to, from, c.nodes[0], c.nodes[1], c.nodes[2]} {
		must(t, n.c.Do(ctx, "cluster", "setslot", slot, "node", to.id).Err())
	}
	t.Logf("%d keys of slot %d have moved", moved, slot)
}

// awaitMaster waits until every node that lives has a node as a master with slots.
func (c *cluster) awaitMaster(t *testing.T, master *node, living ...*node) {
	t.Helper()
	began := time.Now()
	for _, n := range living {
		n.await(t, "cluster nodes", func(nodes string) bool {
			for line := range strings.Lines(nodes) {
				if f := strings.Fields(line); f[0] == master.id && strings.Contains(f[2], "master") && len(f) > 8 {
					return true
				}
			}
			return false
		})
		n.await(t, "cluster info", func(info string) bool { return strings.Contains(info, "cluster_state:ok") })
	}
	t.Logf("%s is the master after %v", master.Addr(), time.Since(began).Round(time.Millisecond))
}

func TestAConsumerRunsOnACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	wholeRun(t, c.place(t, map[string]string{"redis.addresses": strings.Join(c.addresses(), ",")}))
	for _, n := range c.all() {
		nothingRefused(t, n.c)
	}
}

func TestBoardsOfAClusterAreRebuiltUnderTrafficComparedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := c.place(t, map[string]string{"redis.addresses": strings.Join(c.addresses(), ",")})
	slot, err := c.nodes[0].c.ClusterKeySlot(t.Context(), place.Key("ledger")).Result()
	must(t, err)
	owner, other := c.nodes[slot*3/slots].c, place.Prefix+"2"
	run := func(code int, says string, args ...string) {
		t.Helper()
		rules := append(leastRights(t, "cluster"), leastRights(t, args[0])...)
		if args[0] == "rebuild" {
			rules = append(rules, leastRights(t, "consumer")...)
		}
		for _, n := range c.all() {
			user(t, n.c, "someone", place.Prefix, rules...)
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
	run(1, "m7", "diff", "--with", other, "--list")
	run(0, "", "drop", "--prefix", place.Prefix, "--force", "--yes")
	if left := owner.Keys(t.Context(), place.Prefix+":*").Val(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := owner.Keys(t.Context(), other+":*").Val(); len(left) != len(all) {
		t.Errorf("the other prefix has %v", left)
	}
	for _, n := range c.all() {
		nothingRefused(t, n.c)
	}
}

func TestASlotThatMovesAndFailoversOfAClusterLoseNothingAndCountNothingTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := c.place(t, map[string]string{"redis.addresses": c.nodes[0].Addr(), "redis.cluster": "true"})
	slot, err := c.nodes[0].c.ClusterKeySlot(t.Context(), place.Key("ledger")).Result()
	must(t, err)
	owner, other, last := c.nodes[slot*3/slots], c.nodes[0], c.nodes[2]
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)

	t.Log("the slot moves under traffic, and to where the replica is")
	stop := traffic(t, place)
	if owner == last {
		c.move(t, place, last, other)
		owner = other
	}
	c.move(t, place, owner, last)
	stop()
	place.AwaitCaughtUp(t, within)
	reads(t, place)

	t.Log("an orderly failover under traffic")
	stop = traffic(t, place)
	must(t, c.replica.c.ClusterFailover(t.Context()).Err())
	c.awaitMaster(t, c.replica, c.nodes...)
	stop()
	place.AwaitCaughtUp(t, within)

	t.Log("the master dies under traffic")
	last.await(t, "info replication", func(info string) bool {
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
	stop = traffic(t, place)
	c.replica.Kill()
	c.awaitMaster(t, last, c.nodes...)
	stop()
	place.AwaitCaughtUp(t, 30*time.Second) // and not when a minute is over, after which the client would look by itself
	reads(t, place)
	finish(t, place)
	for _, n := range c.nodes {
		nothingRefused(t, n.c)
	}
}
