package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/connect"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// foundIn is every finding of one check, as "outcome: found → to do".
func foundIn(all []finding, check string) string {
	var lines []string
	for _, f := range all {
		if f.Check != check {
			continue
		}
		line := string(f.Result) + ": " + f.Found
		if f.ToDo != "" {
			line += " → " + f.ToDo
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// holds sees that a check came out as it should: each line of want begins with the
// outcome, and all of its parts, between …, are there in this order.
func holds(t *testing.T, all []finding, check, want string) {
	t.Helper()
	got := foundIn(all, check)
	rest := got
	for part := range strings.SplitSeq(want, "…") {
		i := strings.Index(rest, part)
		if i < 0 {
			t.Fatalf("%s came out as\n%s\nwant\n%s", check, got, want)
		}
		rest = rest[i+len(part):]
	}
	if want == "" && got != "" {
		t.Fatalf("%s came out as\n%s\nand shouldn't have been looked at", check, got)
	}
	if wanted := strings.Count(want, "\n"); strings.Count(got, "\n") != wanted {
		t.Fatalf("%s came out as\n%s\nwant %d lines", check, got, wanted+1)
	}
	for _, f := range all {
		if (f.Result == outcomeWarning || f.Result == outcomeWrong) && f.ToDo == "" && !strings.Contains(f.Found, "see schema") {
			t.Errorf("%s says what is wrong, and not what to do: %s", f.Check, f.Found)
		}
		if f.Result == outcomeOK && f.ToDo != "" {
			t.Errorf("%s is ok and has something to do: %s", f.Check, f.ToDo)
		}
		if f.Found == "" || f.Section == "" || strings.ContainsRune(f.Found, '\n') {
			t.Errorf("%+v", f)
		}
	}
}

func offersAll() map[protocol.ApiKey]versions {
	all := map[protocol.ApiKey]versions{}
	for _, n := range needed {
		all[n.key] = n.versions
	}
	return all
}

// aTopic is one that nothing is to be said against, and aCluster has it.
func aTopic() topicFacts {
	settings := func() ingest.TopicSettings {
		return ingest.TopicSettings{
			"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", "min.insync.replicas": "2",
			"message.timestamp.type": "CreateTime", "max.message.bytes": "1048588",
		}
	}
	whole := partitionFacts{leader: true, replicas: 3, inSync: 3}
	return topicFacts{
		name: "points", partitions: []partitionFacts{whole, whole}, settings: settings(),
		logs: []ingest.Log{{Start: 0, End: 500}, {Start: 0, End: 7}}, committed: map[int]int64{},
		outlook:     []ingest.Outlook{{Why: ingest.FromLedger, At: 480}, {Why: ingest.FromLedger, At: 7}},
		deadLetters: &topicFacts{name: "points.dlq", partitions: []partitionFacts{whole, whole}, settings: settings()},
	}
}

func aCluster() *kafkaFacts {
	at := reached{address: "kafka-1:9092"}
	return &kafkaFacts{
		bootstrap: []reached{at}, cluster: "abc", controller: at.address,
		brokers: []brokerFacts{{id: 1, reached: at, offered: offersAll()}}, version: "4.2",
		topics: []topicFacts{aTopic()}, group: groupFacts{state: "Dead"},
	}
}

func aWish() *wanted {
	return &wanted{
		rules:        fold.Rules{Periods: []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}, Lateness: (24 * time.Hour).Milliseconds()},
		largestBatch: 16 << 20, maxEventBytes: 1 << 20, group: "standings", start: "window",
	}
}

func TestWhatCheckSaysOfKafka(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		name   string
		change func(*kafkaFacts, *wanted)
		check  string
		want   string
	}{
		{"all is well", func(*kafkaFacts, *wanted) {}, "brokers", "ok: 1 of 1 addresses answer: kafka-1:9092"},
		{"one address of two", func(f *kafkaFacts, _ *wanted) { f.bootstrap = append(f.bootstrap, reached{"kafka-2:9092", refused}) },
			"brokers", "ok: 1 of 2…\nwarning: connection refused"},
		{"none", func(f *kafkaFacts, _ *wanted) { f.bootstrap[0].err, f.err = refused, refused }, "brokers", "wrong: connection refused"},
		{"none, and the rest", func(f *kafkaFacts, _ *wanted) { f.bootstrap[0].err, f.err = refused, refused }, "start", "not checked: Kafka didn't tell"},
		{"the cluster", func(*kafkaFacts, *wanted) {}, "cluster", "ok: abc, 1 broker, Kafka 4.2 by what it offers"},
		{"no controller", func(f *kafkaFacts, _ *wanted) { f.controller = "" }, "cluster", "warning: abc, …no controller"},
		{"an advertised address that isn't reached", func(f *kafkaFacts, _ *wanted) { f.brokers[0].err = refused },
			"advertised address", "wrong: connection refused…advertised.listeners"},
		{"an old Fetch", func(f *kafkaFacts, _ *wanted) { f.brokers[0].offered[protocol.Fetch] = versions{0, 3} },
			"versions", "wrong: Fetch is offered in versions 0 to 3; 4 to 11 are spoken"},
		{"a Fetch of the future", func(f *kafkaFacts, _ *wanted) { f.brokers[0].offered[protocol.Fetch] = versions{12, 20} },
			"versions", "wrong: Fetch is offered in versions 12 to 20"},
		{"no SyncGroup", func(f *kafkaFacts, _ *wanted) { delete(f.brokers[0].offered, protocol.SyncGroup) },
			"versions", "wrong: SyncGroup isn't offered; only 0 is spoken"},

		{"no topic", func(f *kafkaFacts, _ *wanted) { f.topics[0].err = errNoTopic }, "topic", "wrong: it doesn't exist → create it"},
		{"a topic that may not be seen", func(f *kafkaFacts, _ *wanted) { f.topics[0].err = kafka.TopicAuthorizationFailed }, "topic", "wrong: this user may not see it"},
		{"a topic", func(*kafkaFacts, *wanted) {}, "topic", "ok: 2 partitions, replication factor 3, min.insync.replicas 2"},
		{"one copy", func(f *kafkaFacts, _ *wanted) {
			f.topics[0].partitions[1].replicas, f.topics[0].partitions[1].inSync = 1, 1
		}, "topic", "warning: …replication factor 1"},
		{"no leader", func(f *kafkaFacts, _ *wanted) { f.topics[0].partitions[1].leader = false }, "topic", "wrong: without a leader: partition 1"},
		{"replicas are away", func(f *kafkaFacts, _ *wanted) { f.topics[0].partitions[0].inSync = 2 }, "topic", "warning: replicas are behind or away: partition 0"},
		{"as many in sync as there are", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["min.insync.replicas"] = "3" }, "topic", "warning: …stops all writing"},
		{"compacted", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["cleanup.policy"] = "compact,delete" }, "cleanup.policy", "wrong: compact,delete: …vanish"},
		{"deleted", func(*kafkaFacts, *wanted) {}, "cleanup.policy", "ok: delete"},
		{"no right to the settings", func(f *kafkaFacts, _ *wanted) { f.topics[0].settingsErr = kafka.TopicAuthorizationFailed }, "settings", "not checked: no right…DescribeConfigs"},
		{"no right to the settings, and the rest", func(f *kafkaFacts, _ *wanted) { f.topics[0].settingsErr = kafka.TopicAuthorizationFailed }, "cleanup.policy", ""},

		{"kept without end", func(*kafkaFacts, *wanted) {}, "retention", "ok: without end"},
		{"kept for long", func(f *kafkaFacts, _ *wanted) {
			f.topics[0].settings["retention.ms"] = fmt.Sprint((400 * day).Milliseconds())
		},
			"retention", "ok: events are kept for 400d: longer"},
		{"kept for a month", func(f *kafkaFacts, _ *wanted) {
			f.topics[0].settings["retention.ms"] = fmt.Sprint((33 * day).Milliseconds())
		},
			"retention", "warning: events are kept for 33d, for less than windows are open: yearly (368d)…rebuilt…31752000000"},
		{"kept for a week", func(f *kafkaFacts, _ *wanted) {
			f.topics[0].settings["retention.ms"] = fmt.Sprint((7 * day).Milliseconds())
		},
			"retention", "warning: …weekly (8d12h), monthly (32d12h), yearly (368d)"},
		{"kept by size", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["retention.bytes"] = "1073741824" },
			"retention", "warning: retention.bytes: a partition keeps 1GiB…\nok: without end"},

		{"the producer's time", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["message.timestamp.after.max.ms"] = "3600000" },
			"timestamps", "ok: CreateTime: the producer's, at most 1h ahead"},
		{"the broker's time", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["message.timestamp.type"] = "LogAppendTime" },
			"timestamps", "ok: LogAppendTime: the broker's clock"},
		{"batches", func(*kafkaFacts, *wanted) {}, "max.message.bytes", "ok: 1.0MiB"},
		{"batches of many events", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["max.message.bytes"] = "8388608" },
			"max.message.bytes", "ok: 8MiB; a single event above 1MiB"},
		{"batches beyond memory", func(f *kafkaFacts, _ *wanted) { f.topics[0].settings["max.message.bytes"] = "16777217" },
			"max.message.bytes", "warning: 16.0MiB: …would halt its partition → raise fold_memory to 257MiB"},

		{"dead letters", func(*kafkaFacts, *wanted) {}, "dead letters", "ok: 2 partitions, kept without end"},
		{"no dead letters yet", func(f *kafkaFacts, _ *wanted) { f.topics[0].deadLetters.err = errNoTopic }, "dead letters", "ok: it doesn't exist: it would be created, with 2 partitions"},
		{"dead letters that may not be seen", func(f *kafkaFacts, _ *wanted) { f.topics[0].deadLetters.err = kafka.TopicAuthorizationFailed }, "dead letters", "wrong: this user may not see it"},
		{"fewer dead letters", func(f *kafkaFacts, _ *wanted) {
			f.topics[0].deadLetters.partitions = f.topics[0].deadLetters.partitions[:1]
		},
			"dead letters", "warning: it has 1 partition, and its source 2"},
		{"smaller dead letters", func(f *kafkaFacts, _ *wanted) { f.topics[0].deadLetters.settings["max.message.bytes"] = "1000" },
			"dead letters", "warning: max.message.bytes 1000B is less than its source's 1.0MiB"},
		{"compacted dead letters", func(f *kafkaFacts, _ *wanted) { f.topics[0].deadLetters.settings["cleanup.policy"] = "compact" },
			"dead letters", "warning: cleanup.policy=compact"},

		{"rights", func(*kafkaFacts, *wanted) {}, "rights", "ok: none is missing"},
		{"a right is missing", func(f *kafkaFacts, _ *wanted) { f.missing = ingest.Needs("g", "points")[:1] }, "rights",
			"wrong: no right to Read, which is needed to share the partitions and commit → kafka-acls --add --allow-principal User:… --operation Read --group g"},
		{"a right that is only useful", func(f *kafkaFacts, _ *wanted) { f.missing = ingest.Needs("g", "points")[3:4] }, "rights", "warning: no right to DescribeConfigs"},
		{"rights that aren't told", func(f *kafkaFacts, _ *wanted) { f.rightsErr = refused }, "rights", "not checked: connection refused"},
		{"a broker that refuses", func(f *kafkaFacts, _ *wanted) { f.bootstrap[0].err = &connect.Refusal{}; f.err = refused }, "brokers", "wrong: …docs/security.md"},

		{"no group", func(*kafkaFacts, *wanted) {}, "group", "ok: not there yet"},
		{"no group at all", func(f *kafkaFacts, _ *wanted) { f.group = groupFacts{unused: true} }, "group", "ok: no group was used on this cluster yet"},
		{"an empty group", func(f *kafkaFacts, _ *wanted) { f.group.state = "Empty" }, "group", "ok: no members; empty"},
		{"a group of ours", func(f *kafkaFacts, _ *wanted) {
			f.group = groupFacts{state: "Stable", kind: "consumer", deals: "roundrobin", members: []string{"standings at 10.0.0.1"}}
		}, "group", "ok: 1 member, stable: standings at 10.0.0.1; another one shares its partitions"},
		{"somebody else's group", func(f *kafkaFacts, _ *wanted) {
			f.group = groupFacts{state: "Stable", kind: "consumer", deals: "range", members: []string{"x at 10.0.0.1"}}
		}, "group", `wrong: its 1 member share by "range", and this program by "roundrobin": x at 10.0.0.1`},
		{"a group of connectors", func(f *kafkaFacts, _ *wanted) {
			f.group = groupFacts{state: "Stable", kind: "connect", deals: "sessioned", members: []string{"x", "y"}}
		}, "group", `wrong: its 2 members are of type "connect"`},
		{"a group of the new kind", func(f *kafkaFacts, _ *wanted) { f.group = groupFacts{state: "Dead", listed: true} }, "group", "warning: …isn't a classic one"},
		{"a group that may not be seen", func(f *kafkaFacts, _ *wanted) { f.group.err = kafka.GroupAuthorizationFailed }, "group", "not checked: …describe the group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, want := aCluster(), aWish()
			c.change(f, want)
			holds(t, judgeKafka(f, want), c.check, c.want)
		})
	}
}

func TestWhatCheckSaysOfStarts(t *testing.T) {
	gap := &ingest.Halt{Reason: ingest.HaltGap, What: "the events of points/0 are gone", Remedy: "restore them"}
	partial := hour.UnixMilli()
	for _, c := range []struct {
		name   string
		change func(*topicFacts, *wanted)
		want   string
	}{
		{"from the ledger", func(*topicFacts, *wanted) {}, "ok: goes on from the ledger: partitions 0 at 480, 1 at 7; 20 records to read"},
		{"first", func(f *topicFacts, _ *wanted) {
			f.outlook = []ingest.Outlook{{Why: ingest.First, At: 100, Partial: partial}, {Why: ingest.First}}
		}, "ok: first start (start: window): partitions 0 at 100, 1 at 0; 407 records to read; windows that began before 2100-03-10 12:00:00Z"},
		{"lost, and added", func(f *topicFacts, _ *wanted) {
			f.outlook = []ingest.Outlook{{Why: ingest.Lost, At: 100}, {Why: ingest.Added}}
		}, "ok: partitions were added and begin: partition 1 at 0; 7 records to read\nwarning: Redis has nothing…partition 0 at 100"},
		{"over a gap", func(f *topicFacts, _ *wanted) { f.outlook[0].Why = ingest.OverGap },
			"ok: goes on from the ledger: partition 1…\nwarning: events are gone from the log; on_gap says to go on: partition 0 at 480"},
		{"a halt", func(f *topicFacts, _ *wanted) { f.outlook[0] = ingest.Outlook{Why: ingest.Halts, Halt: gap} },
			"ok: …partition 1 at 7…\nwrong: partition 0 would halt (gap): the events of points/0 are gone → restore them"},
		{"halts", func(f *topicFacts, _ *wanted) {
			f.outlook[0], f.outlook[1] = ingest.Outlook{Why: ingest.Halts, Halt: gap}, ingest.Outlook{Why: ingest.Halts, Halt: gap}
		},
			"wrong: partition 0 and 1 more would halt (gap)"},
		{"another schema", func(f *topicFacts, _ *wanted) {
			h := &ingest.Halt{Reason: ingest.HaltSchema, What: "long", Remedy: "words"}
			f.outlook[0], f.outlook[1] = ingest.Outlook{Why: ingest.Halts, Halt: h}, ingest.Outlook{Why: ingest.Halts, Halt: h}
		}, "wrong: partition 0 and 1 more would halt (schema): see schema, below"},
		{"without Redis", func(f *topicFacts, w *wanted) { f.committed[1], w.notRedis = 7, errors.New("away") },
			"not checked: without Redis nobody knows; the log holds 507 records; 1 of 2 partitions have committed offsets"},
		{"without leaders", func(f *topicFacts, _ *wanted) { f.logsErr = kafka.LeaderNotAvailable }, "wrong: "},
		{"without a right to the group", func(f *topicFacts, _ *wanted) { f.committedErr = kafka.GroupAuthorizationFailed }, "not checked: "},
		{"many", func(f *topicFacts, _ *wanted) {
			f.logs, f.outlook = nil, nil
			for range 40 {
				f.logs, f.outlook = append(f.logs, ingest.Log{End: 9}), append(f.outlook, ingest.Outlook{Why: ingest.FromLedger, At: 8})
			}
		}, "5 at 8, … 34 more; 40 records to read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, want := aCluster(), aWish()
			c.change(&f.topics[0], want)
			if c.name == "many" { // its … is one of its own
				if got := foundIn(judgeKafka(f, want), "start"); !strings.Contains(got, c.want) {
					t.Fatal(got)
				}
				return
			}
			holds(t, judgeKafka(f, want), "start", c.want)
		})
	}
}

func aServer() serverFacts {
	return serverFacts{
		info: map[string]string{
			"redis_version": "7.0.15", "role": "master", "used_memory": "1000", "maxmemory": "0", "maxmemory_policy": "noeviction",
			"aof_enabled": "1", "rdb_last_bgsave_status": "ok", "aof_last_write_status": "ok", "connected_slaves": "0",
		},
		settings: map[string]string{
			"maxmemory-policy": "noeviction", "save": "", "appendfsync": "everysec", "stop-writes-on-bgsave-error": "yes",
			"lazyfree-lazy-expire": "yes", "lazyfree-lazy-server-del": "yes", "min-replicas-to-write": "0",
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
		{"a server", func(*redisFacts, *serverFacts) {}, "server", "ok: Redis 7.0.15, a single server"},
		{"Valkey", func(_ *redisFacts, m *serverFacts) {
			m.info["redis_version"], m.info["valkey_version"] = "7.2.4", "8.0.1"
		}, "server", "ok: Valkey 8.0.1"},
		{"an old one", func(_ *redisFacts, m *serverFacts) { m.info["redis_version"] = "6.0.16" }, "server", "wrong: Redis 6.0.16"},
		{"the oldest", func(_ *redisFacts, m *serverFacts) { m.info["redis_version"] = "6.2.0" }, "server", "ok: Redis 6.2.0"},
		{"a replica", func(_ *redisFacts, m *serverFacts) { m.info["role"] = "slave" }, "server", "wrong: …a replica"},
		{"away", func(f *redisFacts, _ *serverFacts) { f.err = errors.New("refused") }, "server", "wrong: refused"},
		{"away, and the rest", func(f *redisFacts, _ *serverFacts) { f.err = errors.New("refused") }, "persistence", "not checked: Redis didn't answer"},
		{"one master away", func(_ *redisFacts, m *serverFacts) { m.err = errors.New("refused") }, "server", "wrong: refused"},
		{"without INFO", func(_ *redisFacts, m *serverFacts) { m.info = nil }, "server", "not checked: a single server, which doesn't tell its version"},

		{"keeps all", func(*redisFacts, *serverFacts) {}, "eviction", "ok: noeviction"},
		{"evicts", func(_ *redisFacts, m *serverFacts) { m.eviction = &ranking.EvictionError{Policy: "allkeys-lru"} }, "eviction", "wrong: maxmemory-policy allkeys-lru"},
		{"doesn't tell", func(_ *redisFacts, m *serverFacts) { m.eviction = &ranking.EvictionError{} }, "eviction", "wrong: …redis.assume_noeviction"},
		{"doesn't tell, and is believed", func(_ *redisFacts, m *serverFacts) {
			delete(m.info, "maxmemory_policy")
			delete(m.settings, "maxmemory-policy")
		}, "eviction", "warning: not told"},

		{"no limit", func(*redisFacts, *serverFacts) {}, "memory", "ok: 1000B used, no maxmemory"},
		{"room", func(_ *redisFacts, m *serverFacts) { m.info["maxmemory"] = "1250" }, "memory", "ok: 1000B used of maxmemory 1.2KiB"},
		{"almost full", func(_ *redisFacts, m *serverFacts) { m.info["maxmemory"] = "1249" }, "memory", "warning: …(80 %)"},

		{"AOF", func(*redisFacts, *serverFacts) {}, "persistence", "ok: AOF, appendfsync everysec"},
		{"RDB", func(_ *redisFacts, m *serverFacts) { m.info["aof_enabled"], m.settings["save"] = "0", "3600 1" }, "persistence", "ok: RDB, save 3600 1"},
		{"both", func(_ *redisFacts, m *serverFacts) { m.settings["save"] = "3600 1" }, "persistence", "ok: AOF, appendfsync everysec; RDB, save 3600 1"},
		{"neither", func(_ *redisFacts, m *serverFacts) { m.info["aof_enabled"] = "0" }, "persistence", "warning: neither AOF nor RDB"},
		{"a failed save", func(_ *redisFacts, m *serverFacts) {
			m.info["rdb_last_bgsave_status"], m.settings["save"] = "err", "3600 1"
		}, "persistence", "warning: the last BGSAVE failed: Redis may refuse"},
		{"a failed save that stops nothing", func(_ *redisFacts, m *serverFacts) {
			m.info["rdb_last_bgsave_status"], m.settings["save"], m.settings["stop-writes-on-bgsave-error"] = "err", "3600 1", "no"
		}, "persistence", "warning: the last write to disk failed"},
		{"without CONFIG", func(_ *redisFacts, m *serverFacts) { m.info["aof_enabled"], m.settings = "0", nil }, "persistence", "not checked: no AOF"},

		{"frees beside", func(*redisFacts, *serverFacts) {}, "lazyfree", "ok: "},
		{"frees at once", func(_ *redisFacts, m *serverFacts) { m.settings["lazyfree-lazy-expire"] = "no" }, "lazyfree", "warning: lazyfree-lazy-expire no"},
		{"frees, without CONFIG", func(_ *redisFacts, m *serverFacts) { m.settings = nil }, "lazyfree", "not checked: "},
		{"no replicas", func(*redisFacts, *serverFacts) {}, "replicas", "ok: none"},
		{"too few replicas", func(_ *redisFacts, m *serverFacts) { m.settings["min-replicas-to-write"] = "1" }, "replicas", "wrong: none, min-replicas-to-write 1: Redis refuses writes"},
		{"lagging replicas", func(_ *redisFacts, m *serverFacts) {
			m.settings["min-replicas-to-write"], m.info["connected_slaves"], m.info["min_slaves_good_slaves"] = "1", "2", "0"
		}, "replicas", "wrong: 2 replicas, min-replicas-to-write 1"},

		{"one clock", func(_ *redisFacts, m *serverFacts) { m.ahead = 900 * time.Millisecond }, "clock", "ok: within 902ms"},
		{"a clock ahead", func(_ *redisFacts, m *serverFacts) { m.ahead = 2 * time.Second }, "clock", "warning: 2.0s ahead of this machine's"},
		{"a clock behind", func(_ *redisFacts, m *serverFacts) { m.ahead = -10 * time.Minute }, "clock", "warning: 10m0s behind this machine's, by more than max_future"},

		{"rights", func(*redisFacts, *serverFacts) {}, "rights", "ok: "},
		{"a right is missing", func(f *redisFacts, _ *serverFacts) {
			f.rights = &ranking.RightsError{Command: "ZADD", Err: errors.New("NOPERM zadd")}
		}, "rights", "wrong: this user may not run ZADD: NOPERM zadd → ACL SETUSER … +zadd"},
		{"no right to the keys", func(f *redisFacts, _ *serverFacts) {
			f.rights = &ranking.RightsError{Prefix: "lb", Err: errors.New("NOPERM")}
		},
			"rights", "wrong: this user may not use the keys of redis.prefix: NOPERM → ACL SETUSER … ~lb:*"},
		{"another kind", func(f *redisFacts, _ *serverFacts) {
			f.err = &ranking.MisfitError{Server: "a:1", What: "is a Sentinel: name its master: x"}
		},
			"server", "wrong: a:1 is a Sentinel → name its master: x"},
		{"no schema", func(*redisFacts, *serverFacts) {}, "schema", "ok: none yet"},
		{"our schema", func(f *redisFacts, _ *serverFacts) { f.state.Schema = "x" }, "schema", "ok: the standings there"},
		{"another schema", func(f *redisFacts, _ *serverFacts) {
			f.difference = &ranking.SchemaError{Found: schema("UTC"), Wanted: schema("Europe/Berlin")}
		}, "schema", "wrong: …zone is UTC in Redis and Europe/Berlin here → set it back"},
		{"no state", func(f *redisFacts, _ *serverFacts) { f.state, f.noState = nil, errors.New("NOPERM") }, "ledger", "not checked: NOPERM"},

		{"nothing", func(*redisFacts, *serverFacts) {}, "ledger", "ok: nothing yet"},
		{"a ledger", func(f *redisFacts, _ *serverFacts) {
			f.state.Ledger, f.state.Windows = map[string]string{"points/0": "480"}, 3
		}, "ledger", "ok: 1 position, 3 windows listed"},
		{"a torn one", func(f *redisFacts, _ *serverFacts) {
			f.state.Ledger = map[string]string{"points/0": "480", "points/1": "torn:7"}
		},
			"ledger", "wrong: torn: a script died in the middle of a piece of points/1"},
		{"another's", func(f *redisFacts, _ *serverFacts) { f.state.Ledger = map[string]string{"old/0": "480", "old/1": "7"} },
			"ledger", "warning: it has positions of topics that aren't configured: old →"},
		{"held", func(f *redisFacts, _ *serverFacts) { f.state.Held = true }, "ledger", "warning: a rebuild holds the boards"},
		{"nobody runs", func(f *redisFacts, _ *serverFacts) {
			f.state.Workers = map[string]string{"points/0": lineOf(ingest.Line{Owner: "a:1", At: hour.Add(-time.Minute)})}
		}, "consumer", "ok: none has written here in the last 30s"},
		{"two run", func(f *redisFacts, _ *serverFacts) {
			f.state.Workers = map[string]string{
				"points/0": lineOf(ingest.Line{Owner: "a:1", At: hour}), "points/1": lineOf(ingest.Line{Owner: "a:1", At: hour}),
				"points/2": lineOf(ingest.Line{Owner: "b:1", At: hour, State: ingest.StateHalted}),
			}
		}, "consumer", "warning: halted: points/2…\nok: running in the last 30s: a:1 (2 partitions), b:1 (1 partition)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &redisFacts{kind: "a single server", servers: []serverFacts{aServer()}, state: &ledger.State{Now: hour}}
			c.change(f, &f.servers[0])
			holds(t, judgeRedis(f, []string{"points"}, 5*time.Minute), c.check, c.want)
		})
	}
}

func TestWhatCheckSaysOfTheConfiguration(t *testing.T) {
	until := func(d time.Duration) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: "standings"}, NotBefore: hour.Add(-day), NotAfter: hour.Add(d)}
	}
	for _, c := range []struct {
		name    string
		environ []string
		tls     tlsFacts
		check   string
		want    string
	}{
		{name: "defaults", check: "settings", want: "ok: valid; all by default"},
		{name: "environment", environ: []string{"STANDINGS_MAX_POINTS=99", "STANDINGS_LISTEN=off"}, check: "settings", want: "ok: valid; 2 by environment"},
		{name: "a coarse tick", environ: []string{"STANDINGS_MAX_POINTS=999999999999"}, check: "settings",
			want: "ok: …\nwarning: …tell apart only times…lower max_points, or set periods.weekly.layout to wide\nwarning: …monthly…\nwarning: …yearly"},
		{name: "layouts", check: "layouts", want: "ok: weekly readable, tick 10ms; monthly"},
		{name: "a secret", environ: []string{"STANDINGS_REDIS_PASSWORD=hidden"}, check: "secrets", want: "ok: redis.password by environment STANDINGS_REDIS_PASSWORD"},
		{name: "no TLS", check: "tls", want: "ok: off\nok: off"},
		{name: "TLS", tls: tlsFacts{enabled: true}, check: "tls", want: "ok: on, without a certificate of our own\nok: off"},
		{name: "a certificate", tls: tlsFacts{enabled: true, certificate: until(15 * day)}, check: "tls", want: `ok: on; the certificate for "standings" is good until 2100-03-25…` + "\nok: off"},
		{name: "a certificate that ends", tls: tlsFacts{enabled: true, certificate: until(13 * day)}, check: "tls", want: "warning: …ends in 13d0h → renew it…\nok: off"},
		{name: "a certificate that has ended", tls: tlsFacts{enabled: true, certificate: until(-time.Hour)}, check: "tls", want: "wrong: …ended on 2100-03-10T11:00:00Z → renew it…\nok: off"},
		{name: "a certificate that is gone", tls: tlsFacts{enabled: true, err: &tlsError{"cert_file", "can't be read"}}, check: "tls", want: "wrong: kafka.tls.cert_file can't be read…\nok: off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := load("", c.environ)
			if err != nil {
				t.Fatal(err)
			}
			f, err := gatherConfig(l)
			if err != nil {
				t.Fatal(err)
			}
			f.kafka = c.tls
			all := judgeConfig(f, hour)
			holds(t, all, c.check, c.want)
			if strings.Contains(foundIn(all, "secrets"), "hidden") {
				t.Error("it shows a secret")
			}
		})
	}
}

func TestTheWorstFindingIsTheResult(t *testing.T) {
	for want, all := range map[outcome][]outcome{
		outcomeOK: {outcomeOK, outcomeUnchecked}, outcomeWarning: {outcomeOK, outcomeWarning, outcomeUnchecked}, outcomeWrong: {outcomeWarning, outcomeWrong, outcomeOK},
	} {
		var found []finding
		for _, o := range all {
			found = append(found, finding{Result: o})
		}
		if got := conclude(found); got != want {
			t.Errorf("%v came to %s", all, got)
		}
	}
}
