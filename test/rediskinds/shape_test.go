package rediskinds

// What is said of a cluster of the wrong shape: which slots, which masters, which shards.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/harness"
)

func TestWhatAClusterDoesNotServeIsNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := newPlace(t, c.Look(t), nil)
	place.Settings["redis.addresses"], place.Settings["redis.assume_noeviction"] = strings.Join(c.Addresses(), ","), "true"
	finds := func(settings map[string]string, code int, all ...string) {
		t.Helper()
		got := command(t, place, settings, "check")
		flat := strings.Join(strings.Fields(got.stdout), " ") // lines are broken where they are long
		for _, says := range all {
			if got.code != code || !strings.Contains(flat, says) {
				t.Errorf("check doesn't end with %d and show %q, but with %d: %s\n%s", code, says, got.code, got.stdout, got.stderr)
			}
		}
	}
	finds(nil, 0, "the cluster serves all of its slots", "one shard uses one master: redis.shards")
	// run says it at its start, of standings of its own, of which it may begin some before it ends.
	runs := func(of ledger.Shards) *harness.Consumer {
		return place.Start(t, map[string]string{"redis.prefix": fmt.Sprintf("%s-run-%d", place.Prefix, of), "redis.shards": fmt.Sprint(of)})
	}
	one := runs(1)
	one.Log.Await(t, within, "Redis is a cluster, and one shard uses one master of it: consumer reshard spreads members over several")
	one.Terminate(t)

	const of = ledger.Shards(6)
	shardsOf(t, c.Look(t), place.Prefix, of)
	several := map[string]string{"redis.shards": fmt.Sprint(of), "periods.monthly.enabled": "false", "periods.yearly.enabled": "false"}
	finds(several, 1, "6, on 3 servers", "the cluster serves all of its slots") // the standings are of another Kafka

	away := c.Nodes[1]
	away.Kill()
	finds(several, 1,
		fmt.Sprintf("the master %s, which has slots %d-%d, doesn't answer", away.Addr(), slots/3, 2*slots/3-1),
		fmt.Sprintf("shards 2, 3 of %d on %s: ", of, away.Addr()))
	got := command(t, place, several, "status")
	if says := fmt.Sprintf("shards 2, 3 of %d on %s: can't connect to Redis Cluster at ", of, away.Addr()); got.code != 1 || !strings.Contains(got.stderr, says) {
		t.Errorf("status doesn't say %q: %s\n%s", says, got.stdout, got.stderr)
	}
	got = command(t, place, several, "top", "global", "weekly")
	if says := fmt.Sprintf("shard 2 of %d on %s: can't connect to Redis Cluster at ", of, away.Addr()); got.code != 1 || !strings.Contains(got.stderr, says) {
		t.Errorf("top doesn't say %q: %s\n%s", says, got.stdout, got.stderr)
	}
	starting := runs(of)
	harness.Eventually(t, within, func() string {
		says := fmt.Sprintf("; the master %s, which has slots %d-%d, doesn't answer", away.Addr(), slots/3, 2*slots/3-1)
		for _, line := range starting.Log.Lines() {
			if line.Message == "waiting for Redis" && strings.Contains(fmt.Sprint(line.Fields["error"]), says) {
				return ""
			}
		}
		return fmt.Sprintf("run doesn't wait for Redis saying %q:\n%s", says, starting.Log.Tail(5))
	})
	away.Start()
	for _, n := range c.Nodes {
		n.Await(t, "cluster info", func(info string) bool { return strings.Contains(info, "cluster_state:ok") })
	}
	starting.Log.Await(t, within, "consuming")
	starting.Terminate(t)

	for _, n := range c.All() {
		if err := n.C.Do(t.Context(), "config", "set", "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
		must(t, n.C.Do(t.Context(), "cluster", "delslotsrange", 0, 9).Err())
	}
	finds(several, 1, "no master has 0-9 of the cluster's slots")
	line := runs(of).Log.Await(t, within, "the Redis cluster doesn't serve all of its slots")
	if line.Level != "warn" || line.Fields["gap"] != "no master has 0-9 of the cluster's slots" {
		t.Errorf("run says of the gap: %+v", line)
	}
	place.TerminateAll(t)
}
