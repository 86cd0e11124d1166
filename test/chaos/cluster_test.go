package chaos

// This file starts the Redis of the mode cluster: three masters with a replica each, and the standings in
// several shards. Every node announces the address of its network, so that consumers and replicas connect
// through it.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/test/harness"
)

const (
	masters        = 3
	allSlots       = 16384
	clusterEnabled = "--cluster-enabled"
	// nodeTimeout is how long a master must be silent before its replica takes over, which takes some more
	// seconds.
	nodeTimeout = 2 * time.Second
	// healedWithin is the limit until a failover is possible again.
	healedWithin = 90 * time.Second
	// answersWithin is the timeout for a node that may hang.
	answersWithin = 500 * time.Millisecond
)

// clustered starts the nodes, and waits until all of them know all others. The seed chooses the number of
// shards, and whether the cluster serves the rest while some slots have no master.
func (s *store) clustered(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 400))
	shards, coverage := []string{"5", "12"}[r.IntN(2)], []string{"yes", "no"}[r.IntN(2)]
	fmt.Printf("%s: %s shards, cluster-require-full-coverage %s\n", s.mode, shards, coverage)
	upstream := map[string]string{} // by the network's address
	var addresses []string
	for i := range 2 * masters {
		port, err := child.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		bus := strconv.Itoa(port)
		n := newNode(t, fmt.Sprintf("redis-%d", i+1), clusterEnabled, "yes", "--cluster-port", bus,
			"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10), "--cluster-require-full-coverage", coverage,
			// A replica takes over however long its master has been gone, and starts following at once.
			"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")
		n.bus = bus
		if n.id, err = n.direct.Do(t.Context(), "cluster", "myid").Text(); err != nil {
			t.Fatal(err)
		}
		s.nodes, addresses = append(s.nodes, n), append(addresses, n.network.address)
		upstream[n.network.address] = n.server.Addr()
	}
	s.meet(t)
	s.settings = map[string]string{"redis.addresses": strings.Join(addresses, ","), "redis.shards": shards}
	s.look = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addresses, ClientName: "chaos", ClusterStateReloadInterval: time.Second, ContextTimeoutEnabled: true,
		DialTimeout: 5 * time.Second, DialerRetries: 1, ReadTimeout: 30 * time.Second, WriteTimeout: 5 * time.Second,
		Dialer: func(ctx context.Context, kind, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, kind, upstream[address])
		},
	})
	t.Cleanup(func() { _ = s.look.Close() })
}

// meet forms a cluster of the nodes.
func (s *store) meet(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	first := s.nodes[0]
	host, port, _ := net.SplitHostPort(first.server.Addr())
	for i, n := range s.nodes {
		if i < masters {
			if err := n.direct.ClusterAddSlotsRange(ctx, i*allSlots/masters, (i+1)*allSlots/masters-1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if n == first {
			continue
		}
		if err := n.direct.Do(ctx, "cluster", "meet", host, port, first.bus).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range s.nodes[masters:] {
		harness.Eventually(t, time.Minute, func() string {
			if err := n.direct.ClusterReplicate(ctx, s.nodes[i].id).Err(); err != nil {
				return fmt.Sprintf("%s can't follow %s yet: %v", n.server.Addr(), s.nodes[i].server.Addr(), err)
			}
			return ""
		})
	}
	harness.Eventually(t, time.Minute, func() string { return s.clusterUnready(ctx) })
}

// view is a node's own description.
type view struct {
	node    *node
	master  bool
	follows string // id of its master
	epoch   int64  // if two nodes claim a slot, the greater epoch wins
	slots   [][2]int
	ledgers map[int]map[string]string
}

// has reports whether the node claims a slot.
func (v *view) has(slot int) bool {
	return v.master && slices.ContainsFunc(v.slots, func(s [2]int) bool { return s[0] <= slot && slot <= s[1] })
}

// view returns this node's own description, with the ledger if a place is given.
func (n *node) view(ctx context.Context, place *harness.Place) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	text, err := n.direct.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	v := &view{node: n}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.Contains(f[2], "myself") {
			continue
		}
		v.master, v.follows = strings.Contains(f[2], "master"), f[3]
		v.epoch, _ = strconv.ParseInt(f[6], 10, 64)
		for _, part := range f[8:] {
			if strings.HasPrefix(part, "[") { // a slot that is being moved
				continue
			}
			first, last, found := strings.Cut(part, "-")
			if !found {
				last = first
			}
			a, err1 := strconv.Atoi(first)
			b, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil {
				return nil, fmt.Errorf("%s has the slots %q", n.server.Addr(), part)
			}
			v.slots = append(v.slots, [2]int{a, b})
		}
	}
	if place != nil {
		if v.ledgers = n.ledgers(ctx, place); v.ledgers == nil {
			return nil, fmt.Errorf("%s doesn't show its ledger", n.server.Addr())
		}
	}
	return v, nil
}

// views returns the descriptions of all nodes that answer.
func (s *store) views(ctx context.Context, place *harness.Place) []*view {
	answers := make([]*view, len(s.nodes))
	var asked sync.WaitGroup
	for i, n := range s.nodes {
		asked.Go(func() { answers[i], _ = n.view(ctx, place) }) // a node that does not answer has no view
	}
	asked.Wait()
	return slices.DeleteFunc(answers, func(v *view) bool { return v == nil })
}

// owner returns the node that has a slot according to these views; nil if there is none.
func owner(views []*view, slot int) *view {
	var best *view
	for _, v := range views {
		if v.has(slot) && (best == nil || v.epoch > best.epoch) {
			best = v
		}
	}
	return best
}

// owners returns the owner of each shard; nil if it is unknown.
func (s *store) owners(ctx context.Context, place *harness.Place) []*view {
	views := s.views(ctx, place)
	all := make([]*view, place.Shards())
	for shard := range all {
		all[shard] = owner(views, place.Slot(shard))
	}
	return all
}

// all returns the whole ledger by shard and field; nil if a part is unknown.
func (s *store) all(ctx context.Context, place *harness.Place) map[string]int64 {
	at := map[string]int64{}
	for shard, v := range s.owners(ctx, place) {
		if v == nil {
			return nil
		}
		for field, position := range v.ledgers[shard] {
			at[inShard(place, shard, field)] = from(position)
		}
	}
	return at
}

// lowest returns the whole ledger by field alone, with the lowest position.
func (s *store) lowest(ctx context.Context, place *harness.Place) map[string]int64 {
	at, in := map[string]int64{}, map[string]int{}
	for shard, v := range s.owners(ctx, place) {
		if v == nil {
			return nil
		}
		for field, position := range v.ledgers[shard] {
			now := from(position)
			if in[field] > 0 {
				now = min(now, at[field])
			}
			at[field] = now
			in[field]++
		}
	}
	for field, shards := range in {
		if shards < place.Shards() {
			delete(at, field)
		}
	}
	return at
}

// clusterTarget returns one of the masters with shards; the more shards it has, the more likely it is.
func (s *store) clusterTarget(ctx context.Context, place *harness.Place, r *rand.Rand) *node {
	shard := r.IntN(place.Shards())
	for deadline := time.Now().Add(healedWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if v := s.owners(ctx, place)[shard]; v != nil {
			return v.node
		}
	}
	return s.nodes[0]
}

// isMaster reports whether a node has slots for which no other node has a better claim.
func (s *store) isMaster(ctx context.Context, n *node) bool {
	views := s.views(ctx, nil)
	for _, v := range views {
		if v.node == n && v.master && len(v.slots) > 0 {
			return owner(views, v.slots[0][0]) == v
		}
	}
	return false
}

// follower returns the replica of a master; nil if it has none.
func (s *store) follower(ctx context.Context, master *node) *node {
	for _, v := range s.views(ctx, nil) {
		if !v.master && v.follows == master.id {
			return v.node
		}
	}
	return nil
}

// clusterUnready explains why no failover is possible: every node must know all others, and every master
// must have a replica that follows it.
func (s *store) clusterUnready(ctx context.Context) string {
	views := s.views(ctx, nil)
	if len(views) < len(s.nodes) {
		return fmt.Sprintf("%d of %d nodes answer", len(views), len(s.nodes))
	}
	led := map[string]int{} // number of replicas by master
	for _, v := range views {
		n := v.node
		info, err := n.direct.ClusterInfo(ctx).Result()
		if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(s.nodes))) {
			return fmt.Sprintf("%s: %v %s", n.server.Addr(), err, info)
		}
		text, err := n.direct.ClusterNodes(ctx).Result()
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) < 8 || strings.Contains(f[2], "fail") || strings.Contains(f[2], "handshake") || f[7] != "connected" {
				return fmt.Sprintf("%s knows %s", n.server.Addr(), line)
			}
			for _, w := range views {
				if w.node.id == f[0] && w.master != strings.Contains(f[2], "master") {
					return fmt.Sprintf("%s takes %s for something else: %s", n.server.Addr(), w.node.server.Addr(), line)
				}
			}
		}
		if v.master {
			led[n.id] += 0
			continue
		}
		led[v.follows]++
		if is := section(ctx, n.direct, "replication"); is["master_link_status"] != "up" {
			return fmt.Sprintf("%s doesn't follow: %v", n.server.Addr(), is)
		}
	}
	for id, replicas := range led {
		if replicas != 1 || len(led) != masters {
			return fmt.Sprintf("%s has %d replicas, of %d masters", id, replicas, len(led))
		}
	}
	return ""
}

// heal waits until a failover is possible.
func (s *store) heal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healedWithin)
	defer cancel()
	for {
		wrong := s.clusterUnready(ctx)
		if wrong == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the cluster isn't whole after %v: %s", healedWithin, wrong)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
