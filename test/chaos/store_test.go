package chaos

// This file starts the Redis of a mode: one server with an AOF, one that returns to past states, a master
// and a replica with Sentinels, or a cluster (cluster_test.go). Consumers, Sentinels and replicas reach
// every server through a network of its own; the test itself connects directly.

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// The modes.
const (
	plain    = "plain"    // AOF: a crash of the machine loses its end, a crash of the process only what waits for the disk
	sentinel = "sentinel" // a replica that may be behind takes over
	rdb      = "rdb"      // only older dumps
	cluster  = "cluster"  // shards on three masters, each with a replica
)

// allModes lists all modes.
var allModes = []string{plain, sentinel, rdb, cluster}

// masterName is the master's name in the Sentinels.
const masterName = "points"

// node is one server.
type node struct {
	server  *testenv.RedisServer
	network *network
	direct  *redis.Client
	dir     string // of its AOF
	id      string // in a cluster
	bus     string // port of the cluster bus
}

// store is the Redis of a mode.
type store struct {
	mode      string
	nodes     []*node // initially, the first is the master
	sentinels []*redis.SentinelClient
	settings  map[string]string     // tell consumers how to connect
	look      redis.UniversalClient // the test's client for what readers read
	dumps     []dump                // past states, in the mode rdb
}

// dump is a past state.
type dump struct {
	rdb    []byte
	ledger map[string]int64 // at that time, or a moment later
}

func newStore(t *testing.T, mode string, seed uint64) *store {
	t.Helper()
	s := &store{mode: mode}
	switch mode {
	case plain:
		dir := t.TempDir()
		n := newNode(t, "redis", "--appendonly", "yes", "--appendfsync", "everysec", "--dir", dir)
		n.dir = dir
		s.nodes = []*node{n}
	case rdb:
		s.nodes = []*node{newNode(t, "redis")}
	case sentinel:
		s.watched(t)
		return s
	case cluster:
		s.clustered(t, seed)
		return s
	}
	s.settings = map[string]string{"redis.addresses": s.nodes[0].network.address}
	s.look = s.nodes[0].direct
	return s
}

// newNode starts a server that announces its network's address.
func newNode(t *testing.T, name string, args ...string) *node {
	t.Helper()
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	inCluster, as := slices.Contains(args, clusterEnabled), "replica"
	if inCluster {
		as = "cluster"
	}
	server := testenv.LocalRedis(t, append([]string{"--" + as + "-announce-ip", "127.0.0.1", "--" + as + "-announce-port", port}, args...)...)
	direct := redis.NewClient(&redis.Options{
		Addr: server.Addr(), ClientName: "chaos", MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: 5 * time.Second, DialerRetries: 1, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		PoolSize: 1000, // go-redis pauses for a second after as many failed dials as the pool has connections
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			if inCluster {
				return c.ReadOnly(ctx).Err() // so that a replica shows its own data
			}
			return nil
		},
	})
	t.Cleanup(func() { _ = direct.Close() })
	return &node{server: server, direct: direct, network: newNetwork(t, name, address, server.Addr())}
}

// watched starts a master, a replica and three Sentinels.
func (s *store) watched(t *testing.T) {
	t.Helper()
	master := newNode(t, "redis-1")
	host, port, _ := strings.Cut(master.network.address, ":")
	s.nodes = []*node{master, newNode(t, "redis-2", "--replicaof", host+" "+port)}
	var addresses []string
	for range 3 {
		address := harness.StartSentinel(t, masterName, master.network.address, 2, "sentinel failover-timeout "+masterName+" 3000")
		c := redis.NewSentinelClient(&redis.Options{Addr: address, MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		addresses, s.sentinels = append(addresses, address), append(s.sentinels, c)
	}
	s.settings = map[string]string{"redis.addresses": strings.Join(addresses, ","), "redis.sentinel.master": masterName}
	s.look = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: masterName, SentinelAddrs: addresses, MaxRetries: -1, ReadTimeout: 30 * time.Second})
	t.Cleanup(func() { _ = s.look.Close() })
	harness.Eventually(t, time.Minute, func() string { return s.unready(t.Context()) })
}

// target returns a server for a fault: the current master, or in a cluster one of the masters with shards.
func (s *store) target(ctx context.Context, place *harness.Place, r *rand.Rand) *node {
	if s.mode == cluster {
		return s.clusterTarget(ctx, place, r)
	}
	return s.master(ctx)
}

// at returns a client that reads and writes the standings without a network in between.
func (s *store) at(ctx context.Context) redis.UniversalClient {
	if s.mode == cluster {
		return s.look
	}
	return s.master(ctx).direct
}

// positions returns each partition's position; if there are several shards, the lowest. It leaves out
// partitions without a position on some shard. nil: a server does not answer.
func (s *store) positions(ctx context.Context, place *harness.Place) map[string]int64 {
	if s.mode == cluster {
		return s.lowest(ctx, place)
	}
	return s.master(ctx).ledger(ctx, place)
}

// sweep returns a position in the middle of a sweep; "" if there is none.
func (s *store) sweep(ctx context.Context, place *harness.Place) string {
	if s.mode == cluster {
		for _, n := range s.nodes {
			if at := n.sweep(ctx, place); at != "" {
				return at
			}
		}
		return ""
	}
	return s.master(ctx).sweep(ctx, place)
}

// master returns the current master: the server that the Sentinels name.
func (s *store) master(ctx context.Context) *node {
	for _, c := range s.sentinels {
		at, err := c.GetMasterAddrByName(ctx, masterName).Result()
		if err != nil {
			continue
		}
		for _, n := range s.nodes {
			if n.network.address == strings.Join(at, ":") {
				return n
			}
		}
	}
	return s.nodes[0]
}

// replica returns the other server; nil if there is none.
func (s *store) replica(ctx context.Context) *node {
	master := s.master(ctx)
	for _, n := range s.nodes {
		if n != master {
			return n
		}
	}
	return nil
}

// unready explains why no failover is possible: the replica must follow, and the Sentinels must know it.
func (s *store) unready(ctx context.Context) string {
	master, replica := s.master(ctx), s.replica(ctx)
	if role := section(ctx, master.direct, "replication")["role"]; role != "master" {
		return fmt.Sprintf("%s is a %s", master.network.address, role)
	}
	follows := section(ctx, replica.direct, "replication")
	if "127.0.0.1:"+follows["master_port"] != master.network.address || follows["master_link_status"] != "up" {
		return fmt.Sprintf("%s doesn't follow: %v", replica.network.address, follows)
	}
	for _, c := range s.sentinels {
		replicas, err := c.Replicas(ctx, masterName).Result()
		if err != nil || len(replicas) != 1 || replicas[0]["master-link-status"] != "ok" || strings.Contains(replicas[0]["flags"], "down") {
			return fmt.Sprintf("a Sentinel knows these replicas: %v (%v)", replicas, err)
		}
		others, err := c.Sentinels(ctx, masterName).Result()
		if err != nil || len(others) != len(s.sentinels)-1 {
			return fmt.Sprintf("a Sentinel knows these others: %v (%v)", others, err)
		}
	}
	return ""
}

// section returns a section of a server's INFO; nil if it does not answer.
func section(ctx context.Context, c *redis.Client, name string) map[string]string {
	text, err := c.Info(ctx, name).Result()
	if err != nil {
		return nil
	}
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// run returns a server's run id, which changes at a restart.
func (n *node) run(ctx context.Context) string { return section(ctx, n.direct, "server")["run_id"] }

// errors returns how often a server has returned a kind of error: OOM, NOSCRIPT.
func (n *node) errors(ctx context.Context, kind string) int {
	count, _ := strconv.Atoi(strings.TrimPrefix(section(ctx, n.direct, "errorstats")["errorstat_"+kind], "count="))
	return count
}

// clients returns the ids of the connections of consumers and readers.
func (n *node) clients(ctx context.Context) map[string]bool {
	list, err := n.direct.ClientList(ctx).Result()
	if err != nil {
		return nil
	}
	ids := map[string]bool{}
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			fields[key] = value
		}
		ours := fields["name"] == "chaos" || strings.HasPrefix(fields["name"], "sentinel")
		if !ours && strings.Trim(fields["flags"], "NP") == "" { // neither a replica nor a master; P: subscribed
			ids[fields["id"]] = true
		}
	}
	return ids
}

// ledgers returns a server's own ledgers by shard. For a node of a cluster, they are those in its own
// slots, or its master's. nil: it does not answer.
func (n *node) ledgers(ctx context.Context, place *harness.Place) map[int]map[string]string {
	shards := make([]*redis.MapStringStringCmd, place.Shards())
	_, _ = n.direct.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for shard := range shards {
			shards[shard] = p.HGetAll(ctx, place.KeyIn(shard, "ledger"))
		}
		return nil
	})
	all := map[int]map[string]string{}
	for shard, answer := range shards {
		fields, err := answer.Result()
		switch {
		case err == nil:
			all[shard] = fields
		case !redis.HasErrorPrefix(err, "MOVED"):
			return nil
		}
	}
	return all
}

// ledger returns a server's own positions by partition, and by shard if there are several. nil: it does not
// answer.
func (n *node) ledger(ctx context.Context, place *harness.Place) map[string]int64 {
	shards := n.ledgers(ctx, place)
	if shards == nil {
		return nil
	}
	at := map[string]int64{}
	for shard, fields := range shards {
		for field, position := range fields {
			at[inShard(place, shard, field)] = from(position)
		}
	}
	return at
}

// inShard names a field of a ledger, with its shard if there are several.
func inShard(place *harness.Place, shard int, field string) string {
	if place.Shards() == 1 {
		return field
	}
	return fmt.Sprintf("%d: %s", shard, field)
}

// from returns the offset before which everything counts at a position.
func from(position string) int64 {
	offset, _, _ := strings.Cut(strings.TrimPrefix(position, "torn:"), "..")
	n, _ := strconv.ParseInt(offset, 10, 64)
	return n
}

// sweep returns a position in the middle of a sweep in a server's ledger; "" if there is none.
func (n *node) sweep(ctx context.Context, place *harness.Place) string {
	for shard, fields := range n.ledgers(ctx, place) {
		for field, position := range fields {
			if strings.Contains(position, "..") {
				return inShard(place, shard, strings.TrimPrefix(field, place.Topic)) + " " + position
			}
		}
	}
	return ""
}

// behind returns by how many offsets the ledger now is behind the ledger before, over all partitions that
// are behind; 0 if one of the ledgers is unknown.
func behind(now, before map[string]int64) int64 {
	sum := int64(0)
	if now == nil || before == nil {
		return sum
	}
	for field, at := range before {
		sum += max(0, at-now[field])
	}
	return sum
}

// loseTail truncates the AOF of a killed server, as if the machine had died before everything was on its
// disk. It returns the number of lost bytes.
func (n *node) loseTail(bytes int64) (int64, error) {
	files, err := filepath.Glob(filepath.Join(n.dir, "appendonlydir", "*.incr.aof"))
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fmt.Errorf("no AOF in %s", n.dir)
	}
	last := slices.Max(files)
	info, err := os.Stat(last)
	if err != nil {
		return 0, err
	}
	lost := min(bytes, info.Size())
	if err := os.Truncate(last, info.Size()-lost); err != nil {
		return 0, fmt.Errorf("lose the end of the AOF: %w", err)
	}
	return lost, nil
}

// keep stores a dump of the current state, to return to.
func (s *store) keep(ctx context.Context, place *harness.Place) {
	const most = 6
	rdb := s.nodes[0].server.Dump()
	s.dumps = append(s.dumps, dump{rdb, s.nodes[0].ledger(ctx, place)})
	s.dumps = s.dumps[max(0, len(s.dumps)-most):]
}

// refused reports whether no server listens at an address.
func refused(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err != nil
}

// with returns a copy of settings with more.
func with(settings map[string]string, more ...map[string]string) map[string]string {
	all := maps.Clone(settings)
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}
