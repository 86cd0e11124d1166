package check

import (
	"errors"
	"testing"
	"time"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/zoneinfo"
)

func aServer() serverFacts {
	return serverFacts{
		info: map[string]string{
			"redis_version": "7.0.15", "role": "master", "used_memory": "1000", "maxmemory": "0", "maxmemory_policy": "noeviction",
			"aof_enabled": "1", "rdb_last_bgsave_status": "ok", "aof_last_write_status": "ok",
		},
		settings: map[string]string{
			"maxmemory-policy": "noeviction", "save": "", "appendfsync": "everysec",
			"lazyfree-lazy-expire": "yes", "lazyfree-lazy-server-del": "yes",
		},
		within: time.Millisecond,
	}
}

func TestWhatCheckSaysOfRedis(t *testing.T) {
	schema := func(zone string) string { return ranking.Schema{TimeZone: zone}.Text() }
	for _, c := range []struct {
		name   string
		change func(*redisFacts, *serverFacts)
		check  string
		want   string
	}{
		{"a period that a start adds", func(f *redisFacts, _ *serverFacts) { f.added = []ledger.Added{{Period: "season"}} }, "schema", "ok: the start adds the periods season; consumers that are configured without them halt then"},
		{"periods of which one has begun", func(f *redisFacts, _ *serverFacts) {
			f.added = []ledger.Added{{Period: "daily", Since: 1_764_000_000_000}, {Period: "season"}}
		}, "schema", "warning: the start adds the periods daily, season; …the windows of daily that start before about 2025-11-24 16:00:00Z are shown as incomplete until a rebuild → after the start, run consumer rebuild"},
		{"a period that the configuration lacks", func(f *redisFacts, _ *serverFacts) {
			f.difference = &ranking.SchemaError{Found: `{"periods":{"daily":{}}}`, Wanted: `{"periods":{}}`}
		}, "schema", "wrong: the standings there also have the periods daily, which this configuration lacks: a consumer with it stops → add them"},
		{"a server", func(*redisFacts, *serverFacts) {}, "server", "ok: Redis 7.0.15, a single server"},
		{"Valkey", func(_ *redisFacts, m *serverFacts) {
			m.info["redis_version"], m.info["valkey_version"] = "7.2.4", "8.0.1"
		}, "server", "ok: Valkey 8.0.1"},
		{"an old one", func(_ *redisFacts, m *serverFacts) { m.info["redis_version"] = "6.0.16" }, "server", "wrong: Redis 6.0.16"},
		{"the oldest", func(_ *redisFacts, m *serverFacts) { m.info["redis_version"] = "6.2.0" }, "server", "ok: Redis 6.2.0"},
		{"a replica", func(_ *redisFacts, m *serverFacts) { m.info["role"] = "slave" }, "server", "wrong: …a replica"},
		{"away", func(f *redisFacts, _ *serverFacts) { f.err = errors.New("refused") }, "server", "wrong: refused"},
		{"one master away", func(_ *redisFacts, m *serverFacts) { m.err = errors.New("refused") }, "server", "wrong: refused"},
		{"without INFO", func(_ *redisFacts, m *serverFacts) { m.info = nil }, "server", "not checked: a single server, version not reported"},

		{"keeps all", func(*redisFacts, *serverFacts) {}, "eviction", "ok: noeviction"},
		{"doesn't tell", func(_ *redisFacts, m *serverFacts) { m.eviction = &redisconn.EvictionError{} }, "eviction", "wrong: …redis.assume_noeviction"},
		{"doesn't tell, and is believed", func(_ *redisFacts, m *serverFacts) {
			delete(m.info, "maxmemory_policy")
			delete(m.settings, "maxmemory-policy")
		}, "eviction", "warning: not reported"},

		{"a cluster that serves all", func(f *redisFacts, _ *serverFacts) { f.cluster = true }, "slots", "ok: the cluster serves all of its slots"},
		{"a cluster with a gap", func(f *redisFacts, _ *serverFacts) { f.cluster, f.gaps = true, []string{"no master has 5-9"} }, "slots", "wrong: no master has 5-9"},
		{"a cluster that can't be asked", func(f *redisFacts, _ *serverFacts) { f.cluster, f.gapsErr = true, errors.New("no right") }, "slots", "not checked: no right"},
		{"shards", func(f *redisFacts, _ *serverFacts) {
			f.states, f.shards = make([]ledger.State, 3), []shards.Report{{Master: new("a:1")}, {Master: new("b:1")}, {Master: new("a:1")}}
		}, "shards", "ok: 3, on 2 servers"},
		{"a shard that holds nothing", func(f *redisFacts, _ *serverFacts) {
			f.states, f.shards = make([]ledger.State, 3), []shards.Report{{}, {Shard: 1, Ledger: map[string]string{}, Problem: new("nothing")}, {}}
		}, "shards", "warning: of 3 shards these are empty, while others are not: 1"},
		{"shards that are away", func(f *redisFacts, _ *serverFacts) {
			f.states, f.problems = make([]ledger.State, 3), []string{"shards 1, 2 of 3 on b:1: refused"}
		}, "shards", "wrong: shards 1, 2 of 3 on b:1: refused"},

		{"no limit", func(*redisFacts, *serverFacts) {}, "memory", "ok: 1000B used, no maxmemory"},
		{"room", func(_ *redisFacts, m *serverFacts) { m.info["maxmemory"] = "1250" }, "memory", "ok: 1000B used of maxmemory 1.2KiB"},

		{"AOF", func(*redisFacts, *serverFacts) {}, "persistence", "ok: AOF, appendfsync everysec"},
		{"RDB", func(_ *redisFacts, m *serverFacts) { m.info["aof_enabled"], m.settings["save"] = "0", "3600 1" }, "persistence", "ok: RDB, save 3600 1"},
		{"both", func(_ *redisFacts, m *serverFacts) { m.settings["save"] = "3600 1" }, "persistence", "ok: AOF, appendfsync everysec; RDB, save 3600 1"},
		{"a failed save", func(_ *redisFacts, m *serverFacts) {
			m.info["rdb_last_bgsave_status"], m.settings["save"] = "err", "3600 1"
		}, "persistence", "warning: the last write to disk failed: Redis may refuse"},

		{"frees beside", func(*redisFacts, *serverFacts) {}, "lazyfree", "ok: "},

		{"one clock", func(_ *redisFacts, m *serverFacts) { m.ahead = 900 * time.Millisecond }, "clock", "ok: within 902ms"},
		{"a clock ahead", func(_ *redisFacts, m *serverFacts) { m.ahead = 2 * time.Second }, "clock", "warning: 2.0s ahead of this machine's"},
		{"a clock behind", func(_ *redisFacts, m *serverFacts) { m.ahead = -10 * time.Minute }, "clock", "warning: 10m0s behind this machine's"},

		{"rights", func(*redisFacts, *serverFacts) {}, "rights", "ok: "},
		{"a right is missing", func(f *redisFacts, _ *serverFacts) {
			f.rights = &redisconn.RightsError{Command: "ZADD", Err: errors.New("NOPERM zadd")}
		}, "rights", "wrong: this user may not run ZADD: NOPERM zadd → ACL SETUSER … +zadd"},
		{"no right to the keys", func(f *redisFacts, _ *serverFacts) {
			f.rights = &redisconn.RightsError{Prefix: "lb", Err: errors.New("NOPERM")}
		},
			"rights", "wrong: this user may not use the keys of redis.prefix: NOPERM → ACL SETUSER … ~lb:*"},
		{"a wrong password", func(f *redisFacts, _ *serverFacts) {
			f.err = &redisconn.ServerMismatchError{What: "doesn't take redis.password for x: the password is wrong, or there is no such user"}
		}, "server", "wrong: doesn't take redis.password for x: the password is wrong, or there is no such user → see docs/security.md"},
		{"another kind", func(f *redisFacts, _ *serverFacts) {
			f.err = &redisconn.ServerMismatchError{Server: "a:1", What: "is a Sentinel: name its master: x"}
		},
			"server", "wrong: a:1 is a Sentinel: name its master: x → see docs/security.md"},
		{"another schema", func(f *redisFacts, _ *serverFacts) {
			f.difference = &ranking.SchemaError{Found: schema("UTC"), Wanted: schema("Europe/Berlin")}
		}, "schema", "wrong: …time_zone is UTC in Redis, Europe/Berlin here → restore it"},
		{"no state", func(f *redisFacts, _ *serverFacts) { f.state, f.noState = nil, errors.New("NOPERM") }, "ledger", "not checked: NOPERM"},

		{"nothing", func(*redisFacts, *serverFacts) {}, "ledger", "ok: nothing yet"},
		{"a ledger", func(f *redisFacts, _ *serverFacts) {
			f.state.Ledger, f.state.Windows = map[string]string{"points/0": "480"}, 3
		}, "ledger", "ok: 1 position, 3 windows listed"},
		{"another's", func(f *redisFacts, _ *serverFacts) { f.state.Ledger = map[string]string{"old/0": "480", "old/1": "7"} },
			"ledger", "warning: the ledger has topics that are not configured: old →"},
		{"held", func(f *redisFacts, _ *serverFacts) { f.state.Held = true }, "ledger", "warning: a rebuild holds the boards"},
		{"nobody runs", func(f *redisFacts, _ *serverFacts) {
			f.state.Workers = map[string]string{"points/0": lineText(workers.Line{Owner: "a:1", At: checkedAt.Add(-time.Minute)})}
		}, "consumer", "ok: none has written here in the last 3s"},
		{"two run", func(f *redisFacts, _ *serverFacts) {
			f.state.Workers = map[string]string{
				"points/0": lineText(workers.Line{Owner: "a:1", At: checkedAt}), "points/1": lineText(workers.Line{Owner: "a:1", At: checkedAt}),
				"points/2": lineText(workers.Line{Owner: "b:1", At: checkedAt, State: workers.StateHalted, Reason: "gap", What: "gone", Remedy: "restore them"}),
				"points/3": lineText(workers.Line{Owner: "c:1", At: checkedAt.Add(-time.Hour), State: workers.StateHalted, Reason: "torn"}),
			}
		}, "consumer", "wrong: halted: points/2 (gap): gone → restore them\nok: running in the last 3s: a:1, b:1"},
		{"consumers with other time zone data", func(f *redisFacts, _ *serverFacts) {
			f.state.Workers = map[string]string{
				"points/0": lineText(workers.Line{Owner: "a:1", At: checkedAt, TimeZoneData: "2025b"}), "points/1": lineText(workers.Line{Owner: "b:1", At: checkedAt, TimeZoneData: "2199a"}),
				"points/2": lineText(workers.Line{Owner: "c:1", At: checkedAt.Add(-time.Hour), TimeZoneData: "2198z"}),
			}
		}, "time_zone_data", "warning: the running consumers have the time zone data 2025b, 2199a, and this program " + zoneinfo.Current().Version + " → give all"},
		{"consumers with this program's time zone data", func(f *redisFacts, _ *serverFacts) {
			f.state.Workers = map[string]string{"points/0": lineText(workers.Line{Owner: "a:1", At: checkedAt, TimeZoneData: zoneinfo.Current().Version})}
		}, "time_zone_data", ""},
		{"boards", func(f *redisFacts, _ *serverFacts) { f.state.Windows = 3 }, "boards", "ok: every window that is listed has its key"},
		{"boards that are lost", func(f *redisFacts, _ *serverFacts) { f.state.Windows, f.lost = 3, []string{"global:weekly:2026-W47"} }, "boards",
			"wrong: 1 window listed without a key in Redis; a partition with an event for one halts (board_lost): global:weekly:2026-W47 → rebuild"},
		{"boards that are refilled", func(f *redisFacts, _ *serverFacts) {
			f.state.Windows, f.state.Ledger, f.state.Refills = 3, map[string]string{"points/0": "7"}, map[string]int64{"points/0": 1007}
		}, "boards", "warning: refilling after Redis was lost or the boards were rebuilt: 1,000 records still to read"},
		{"boards whose rule has changed", func(f *redisFacts, _ *serverFacts) {
			f.state.Windows, f.others = 3, []*ranking.RuleError{{Window: "arena:weekly:2026-W47", Found: "best(stage:999)"}}
		}, "rules", "wrong: 1 window written by another rule than the configured one; a partition with an event for one halts (board_rule): arena:weekly:2026-W47; " +
			"the first by best(stage:999), configured is points, summed (the default) → restore the rule"},
		{"boards by their rules", func(f *redisFacts, _ *serverFacts) { f.state.Windows = 3 }, "rules", "ok: every window that is listed was written by its board's rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &redisFacts{kind: "a single server", servers: []serverFacts{aServer()}, state: &ledger.State{Now: checkedAt}}
			c.change(f, &f.servers[0])
			holds(t, judgeRedis(f, []string{"points"}), c.check, c.want)
		})
	}
}
