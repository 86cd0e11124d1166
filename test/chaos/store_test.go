package chaos

// The Redis of a mode: one server that keeps a log of its writes, one whose past comes
// back, a master and a replica with Sentinels, or a cluster (cluster_test.go). Consumers,
// Sentinels and replicas reach every server through a network of its own; the test itself
// goes past it.

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
	plain    = "plain"    // AOF: a crash loses the end of it, of the process what waits for the disk
	sentinel = "sentinel" // a replica that may be behind takes over
	rdb      = "rdb"      // nothing but dumps of some time ago
	cluster  = "cluster"  // shards on three masters, each with a replica
)

// allModes are all that there are.
var allModes = []string{plain, sentinel, rdb, cluster}

// masterName is what Sentinels call the master.
const masterName = "points"

// node is one server.
type node struct {
	server  *testenv.RedisServer
	network *network
	direct  *redis.Client
	dir     string // of its AOF
	id      string // in a cluster
	bus     string // the port of a cluster's bus
}

// store is a mode's Redis.
type store struct {
	mode      string
	nodes     []*node // the first is the master at the start
	sentinels []*redis.SentinelClient
	settings  map[string]string     // how consumers reach it
	look      redis.UniversalClient // how the test reads what readers read
	dumps     []dump                // of the past, in the mode rdb
}

// dump is a past to go back to.
type dump struct {
	rdb    []byte
	ledger map[string]int64 // then, or a moment later
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

// newNode starts a server that announces itself by its network.
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
		PoolSize: 1000, // after so many failed dials it would answer nothing for a second
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			if inCluster {
				return c.ReadOnly(ctx).Err() // a replica shows what it has
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

// target is a server for a fault: the one that holds the standings now, or of a cluster one
// of those that hold shards.
func (s *store) target(ctx context.Context, place *harness.Place, r *rand.Rand) *node {
	if s.mode == cluster {
		return s.clusterTarget(ctx, place, r)
	}
	return s.master(ctx)
}

// at is where the standings are read and written past all networks.
func (s *store) at(ctx context.Context) redis.UniversalClient {
	if s.mode == cluster {
		return s.look
	}
	return s.master(ctx).direct
}

// positions are where each partition stands, of several shards in the one furthest behind;
// one that a shard has no position of is left out. nil: somebody doesn't answer.
func (s *store) positions(ctx context.Context, place *harness.Place) map[string]int64 {
	if s.mode == cluster {
		return s.lowest(ctx, place)
	}
	return s.master(ctx).ledger(ctx, place)
}

// sweep is a position in the middle of a sweep; none: "".
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

// master is the server that holds the standings now: the one that the Sentinels name.
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

// replica is the other one; nil where there is none.
func (s *store) replica(ctx context.Context) *node {
	master := s.master(ctx)
	for _, n := range s.nodes {
		if n != master {
			return n
		}
	}
	return nil
}

// unready says why no failover can be had: the replica has to follow, and the Sentinels
// have to know it.
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

// section is a part of what a server says of itself; nil where it doesn't answer.
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

// run is a server's run id, by which it is told from itself before a restart.
func (n *node) run(ctx context.Context) string { return section(ctx, n.direct, "server")["run_id"] }

// errors is how often a server has answered with a kind of error: OOM, NOSCRIPT.
func (n *node) errors(ctx context.Context, kind string) int {
	count, _ := strconv.Atoi(strings.TrimPrefix(section(ctx, n.direct, "errorstats")["errorstat_"+kind], "count="))
	return count
}

// clients are the connections of consumers and readers.
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

// ledgers are the fields of the ledger that a server itself has, by shard. Of a cluster's
// node they are those of the slots that it has, or its master. nil: it doesn't answer.
func (n *node) ledgers(ctx context.Context, place *harness.Place) map[int]map[string]string {
	shards := make([]*redis.MapStringStringCmd, place.Shards())
	_, _ = n.direct.Pipelined(ctx, func(p redis.Pipeliner) error { // each has its own error
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

// ledger is what a server itself has of the ledger: where each partition stands, and of
// several shards in each. nil: it doesn't answer.
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

// inShard is a name of a ledger's field, which tells the shard where there are several.
func inShard(place *harness.Place, shard int, field string) string {
	if place.Shards() == 1 {
		return field
	}
	return fmt.Sprintf("%d: %s", shard, field)
}

// from is the offset up to which everything counts by a position.
func from(position string) int64 {
	offset, _, _ := strings.Cut(strings.TrimPrefix(position, "torn:"), "..")
	n, _ := strconv.ParseInt(offset, 10, 64)
	return n
}

// sweep is a position in the middle of a sweep that a server's ledger has; none: "".
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

// behind is by how many offsets one ledger is behind another, over all partitions that
// are behind; 0 where one of them isn't known.
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

// loseTail drops the end of the AOF of a server that is killed, as a machine does that
// dies before it has written everything to its disk. It returns how much.
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

// persist has what Redis holds survive every crash of the mode: an AOF whose end is lost
// begins anew.
func (s *store) persist(ctx context.Context) error {
	if s.mode != plain {
		return nil
	}
	n := s.nodes[0]
	if err := n.direct.BgRewriteAOF(ctx).Err(); err != nil {
		return fmt.Errorf("rewrite the AOF: %w", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		is := section(ctx, n.direct, "persistence")
		if is["aof_rewrite_in_progress"] == "0" && is["aof_rewrite_scheduled"] == "0" && is["aof_last_bgrewrite_status"] == "ok" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the AOF isn't rewritten: %v", is)
		}
	}
}

// keep keeps a dump of now, to go back to.
func (s *store) keep(ctx context.Context, place *harness.Place) {
	const most = 6
	rdb := s.nodes[0].server.Dump()
	s.dumps = append(s.dumps, dump{rdb, s.nodes[0].ledger(ctx, place)})
	s.dumps = s.dumps[max(0, len(s.dumps)-most):]
}

// refused reports whether nobody listens at an address.
func refused(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err != nil
}

// with is a copy of settings with more.
func with(settings map[string]string, more ...map[string]string) map[string]string {
	all := maps.Clone(settings)
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}
