package rediskinds

// A master of a cluster is away, with its shards: every source of information shows this to the operator.

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
)

const shards = 12

// shardsOfMaster returns the shards that one of three masters has initially.
func shardsOfMaster(master int) []int {
	var all []int
	for i := master * shards / 3; i < (master+1)*shards/3; i++ {
		all = append(all, i)
	}
	return all
}

// masterOf returns the master of a shard according to the metrics.
func masterOf(m harness.Metrics, shard int) string {
	for series := range m {
		if rest, ok := strings.CutPrefix(series, `standings_shard_info{master="`); ok && strings.HasSuffix(rest, fmt.Sprintf(`",shard="%d"}`, shard)) {
			return strings.Split(rest, `"`)[0]
		}
	}
	return ""
}

// waitedFor returns "" if the metrics show that exactly these shards are waited for, and otherwise the difference.
func waitedFor(t *testing.T, c *harness.Consumer, some ...int) string {
	t.Helper()
	m, err := c.Scrape(t.Context())
	if err != nil {
		return err.Error()
	}
	away := map[int]bool{}
	for _, shard := range some {
		away[shard] = true
	}
	for shard := range shards {
		partitions := fmt.Sprintf(`standings_shard_waiting_partitions{reason="redis",shard="%d"}`, shard)
		seconds := fmt.Sprintf(`standings_shard_waiting_seconds{shard="%d"}`, shard)
		n, ok := m[partitions]
		waits, known := m[seconds]
		if !ok || !known || (n > 0) != away[shard] || (waits > 0) != away[shard] {
			return fmt.Sprintf("shard %d is waited for by %v partitions for %v s", shard, n, waits)
		}
	}
	return ""
}

func TestAMasterThatIsAwayIsNamedWithItsShardsWhereverOneLooksAndTakenBack(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	for _, n := range cluster.All() { // the other masters continue to serve
		harness.Must(t, n.C.ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	place := cluster.place(t, map[string]string{"redis.addresses": strings.Join(cluster.Addresses(), ","), "redis.shards": fmt.Sprint(shards)})
	consumer := place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)
	consumer.AwaitReady(t, within)

	m, err := consumer.Scrape(t.Context())
	harness.Must(t, err)
	updates := 0.0
	for shard := range shards {
		of := m[fmt.Sprintf(`standings_shard_updates_total{shard="%d"}`, shard)]
		pieces := m[fmt.Sprintf(`standings_shard_apply_seconds_count{shard="%d"}`, shard)]
		took := m[fmt.Sprintf(`standings_shard_apply_seconds_sum{shard="%d"}`, shard)]
		if of == 0 || pieces == 0 || took == 0 || masterOf(m, shard) != cluster.Nodes[shard*3/shards].Addr() {
			t.Errorf("shard %d on %q: %v updates, %v pieces, %v s", shard, masterOf(m, shard), of, pieces, took)
		}
		updates += of
	}
	if updates != m["standings_updates_total"] {
		t.Errorf("%v updates over all shards, and %v together", updates, m["standings_updates_total"])
	}
	if wrong := waitedFor(t, consumer); wrong != "" {
		t.Error(wrong)
	}

	t.Log("the second master hangs under traffic")
	away, some := cluster.Nodes[1], shardsOfMaster(1)
	stop := place.Traffic(t, 2).Stop
	name := fmt.Sprintf("shard %d of %d on %s: ", some[0], shards, away.Addr())
	away.Pause()
	harness.Eventually(t, within, func() string { return waitedFor(t, consumer, some...) })
	reason := consumer.AwaitNotReady(t, within, "waiting", name)
	if others := fmt.Sprintf("waited for as well: shards %d to %d", some[1], some[len(some)-1]); reason.Cause != "redis" || !strings.Contains(reason.What, others) {
		t.Errorf("/readyz: %+v", reason)
	}
	harness.Eventually(t, within, func() string {
		if waitsLogged(consumer, name) == 0 {
			return "the log doesn't name " + name
		}
		return ""
	})
	statusNames(t, place, away, some)
	away.Resume()
	harness.Eventually(t, within, func() string { return waitedFor(t, consumer) })
	consumer.AwaitReady(t, within)
	stop()
	place.AwaitCaughtUp(t, within)
	harness.Eventually(t, within, func() string { // the consumer reports once a second
		got := place.Run(t, nil, "status")
		if got.Code != 0 || strings.Contains(got.Stdout, "can't") || strings.Contains(got.Stdout, "waiting") {
			return fmt.Sprintf("exit code %d: %s\n%s", got.Code, got.Stdout, got.Stderr)
		}
		return ""
	})

	t.Log("the third master dies, and its replica takes over")
	dead, some := cluster.Nodes[2], shardsOfMaster(2)
	stop = place.Traffic(t, 2).Stop
	dead.Kill()
	harness.Eventually(t, within, func() string { return waitedFor(t, consumer, some...) })
	cluster.AwaitMaster(t, cluster.Replica, cluster.Nodes[0], cluster.Nodes[1], cluster.Replica)
	harness.Eventually(t, within, func() string {
		m, err := consumer.Scrape(t.Context())
		harness.Must(t, err)
		for _, shard := range some {
			if at := masterOf(m, shard); at != cluster.Replica.Addr() {
				return fmt.Sprintf("the master of shard %d is %q by the metrics", shard, at)
			}
		}
		return waitedFor(t, consumer)
	})
	stop()
	consumer.AwaitReady(t, within)
	place.Finish(t)
}

// waitsLogged returns the number of log lines about waiting whose error contains a text.
func waitsLogged(c *harness.Consumer, what string) int {
	n := 0
	for _, line := range c.Log.Lines() {
		if line.Message == "waiting, and trying again" && strings.Contains(fmt.Sprint(line.Fields["error"]), what) {
			n++
		}
	}
	return n
}

// statusNames requires that `status` names a master that is away and its shards, as text and as JSON.
func statusNames(t *testing.T, place *harness.Place, away *harness.Node, some []int) {
	t.Helper()
	got := place.Run(t, nil, "status")
	t.Logf("status:\n%s%s", got.Stdout, got.Stderr)
	named := map[string]bool{}
	for line := range strings.Lines(got.Stdout) {
		if f := strings.Fields(line); len(f) > 4 && f[1] == away.Addr() && f[2] == "-" {
			named[f[0]] = true
		}
	}
	want := map[string]bool{}
	for _, shard := range some {
		want[fmt.Sprint(shard)] = true
	}
	if got.Code != 1 || !maps.Equal(named, want) || !strings.Contains(got.Stderr, "on "+away.Addr()) {
		t.Errorf("consumer status ends with %d and names %v as away:\n%s%s", got.Code, named, got.Stdout, got.Stderr)
	}
}
