package check

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/units"
)

// aTopic returns a topic with which check finds no fault; aCluster returns a cluster that has it.
func aTopic() topicFacts {
	settings := func() kafkaconn.TopicSettings {
		return kafkaconn.TopicSettings{
			"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", "min.insync.replicas": "2",
			"message.timestamp.type": "CreateTime", "max.message.bytes": "1048588",
		}
	}
	whole := func(id int) kafka.Partition {
		return kafka.Partition{ID: id, Leader: kafka.Broker{Host: "kafka-1"}, Replicas: make([]kafka.Broker, 3), Isr: make([]kafka.Broker, 3)}
	}
	return topicFacts{
		name: "points", partitions: []kafka.Partition{whole(0), whole(1)}, settings: settings(),
		logs: []kafkaconn.Log{{Start: 0, End: 500}, {Start: 0, End: 7}}, committed: map[int]kafkaconn.Commit{},
		outlook:     []locate.Outlook{{Why: locate.FromLedger, At: 480}, {Why: locate.FromLedger, At: 7}},
		deadLetters: &topicFacts{name: "points.dlq", partitions: []kafka.Partition{whole(0), whole(1)}, settings: settings()},
	}
}

// bansTopic returns a bans topic.
func bansTopic(partitions, copies int, policy string) *topicFacts {
	t := &topicFacts{name: "bans", settings: kafkaconn.TopicSettings{"cleanup.policy": policy}}
	for id := range partitions {
		t.partitions = append(t.partitions, kafka.Partition{ID: id, Replicas: make([]kafka.Broker, copies)})
	}
	return t
}

// finals gives the cluster the topics for final windows.
func (f *kafkaFacts) finals(policy, published string) {
	f.final, f.published = bansTopic(3, 3, policy), bansTopic(1, 3, published)
	f.final.name, f.published.name = "final", "final.done"
}

func aCluster() *kafkaFacts {
	at := reached{address: "kafka-1:9092"}
	return &kafkaFacts{
		bootstrap: []reached{at}, cluster: "abc",
		brokers: []brokerFacts{{id: 1, reached: at, sessions: kafkaconn.Sessions{Shortest: 6 * time.Second, Longest: 30 * time.Minute}}},
		topics:  []topicFacts{aTopic()}, group: groupFacts{Group: kafkaconn.Group{State: "Dead"}},
	}
}

func configured(t *testing.T) *config.Config {
	t.Helper()
	l, err := config.Load("", []string{"STANDINGS_FOLD_MEMORY=256MiB"})
	require.NoError(t, err)
	return l.Config
}

// judged returns what check says of a cluster.
func judged(f *kafkaFacts, cfg *config.Config, notRedis error) []finding {
	rules := fold.BuiltIn(periods.Calendar{}, (24 * time.Hour).Milliseconds(), periods.Weekly, periods.Monthly, periods.Yearly)
	return judgeKafka(f, cfg, &rules, notRedis)
}

func TestWhatCheckSaysOfKafka(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		name   string
		change func(*kafkaFacts, *config.Config)
		check  string
		want   string
	}{
		{"all is well", func(*kafkaFacts, *config.Config) {}, "brokers", "ok: 1 of 1 addresses answer: kafka-1:9092"},
		{"a final topic", func(f *kafkaFacts, _ *config.Config) { f.finals("compact", "compact") },
			"final topic", "ok: 3 partitions, cleanup.policy=compact\nok: 1 partition, cleanup.policy=compact"},
		{"a final topic that goes by age", func(f *kafkaFacts, _ *config.Config) { f.finals("delete", "compact") },
			"final topic", "warning: cleanup.policy=delete: records are deleted by their age…\nok: 1"},
		{"what is published goes by age", func(f *kafkaFacts, _ *config.Config) { f.finals("compact", "compact,delete") },
			"final topic", "ok: 3…\nwrong: it has cleanup.policy=compact,delete, which forgets which windows are published"},
		{"what is published in several orders", func(f *kafkaFacts, _ *config.Config) {
			f.finals("compact", "compact")
			f.published.partitions = f.final.partitions
		}, "final topic", "ok: 3…\nwrong: it has 3 partitions"},
		{"final topics that aren't there yet", func(f *kafkaFacts, _ *config.Config) {
			f.final, f.published = &topicFacts{name: "final", err: kafkaconn.ErrNoTopic}, &topicFacts{name: "final.done", err: kafkaconn.ErrNoTopic}
		}, "final topic", "ok: does not exist: it would be created…\nok: does not exist"},
		{"a final topic that may not be seen", func(f *kafkaFacts, _ *config.Config) {
			f.finals("compact", "compact")
			f.final.err = kafka.TopicAuthorizationFailed
		}, "final topic", "wrong: it does not exist, or this user may not describe it…\nok: 1"},
		{"a cluster without transactions", func(f *kafkaFacts, _ *config.Config) {
			f.finals("compact", "compact")
			f.noTransactions = true
		}, "rights", "not checked: the cluster has no transactions yet…\nok: none is missing"},

		{"no bans topic is named", func(*kafkaFacts, *config.Config) {}, "bans topic", ""},
		{"bans", func(f *kafkaFacts, _ *config.Config) { f.bans = bansTopic(1, 3, "compact") }, "bans topic", "ok: 1 partition, cleanup.policy=compact"},
		{"bans that go by age", func(f *kafkaFacts, _ *config.Config) { f.bans = bansTopic(1, 3, "delete") },
			"bans topic", "wrong: it has cleanup.policy=delete, which deletes bans by their age…cleanup.policy=compact"},
		{"bans in several orders", func(f *kafkaFacts, _ *config.Config) { f.bans = bansTopic(2, 3, "compact") }, "bans topic", "wrong: it has 2 partitions"},
		{"bans in one copy", func(f *kafkaFacts, _ *config.Config) { f.bans = bansTopic(1, 1, "compact") }, "bans topic", "warning: one copy…\nok: 1 partition"},
		{"bans that aren't there yet", func(f *kafkaFacts, _ *config.Config) { f.bans = &topicFacts{name: "bans", err: kafkaconn.ErrNoTopic} },
			"bans topic", "ok: does not exist: it would be created"},
		{"bans that may not be seen", func(f *kafkaFacts, _ *config.Config) {
			f.bans = &topicFacts{name: "bans", err: kafka.TopicAuthorizationFailed}
		},
			"bans topic", "wrong: it does not exist, or this user may not describe it"},
		{"bans whose configuration may not be read", func(f *kafkaFacts, _ *config.Config) {
			f.bans = bansTopic(1, 3, "compact")
			f.bans.settings, f.bans.settingsErr = nil, kafka.TopicAuthorizationFailed
		}, "bans topic", "not checked: no right to read the topic's configuration…DescribeConfigs"},
		{"the cluster", func(*kafkaFacts, *config.Config) {}, "cluster", "ok: abc, 1 broker"},
		{"an advertised address that isn't reached", func(f *kafkaFacts, _ *config.Config) { f.brokers[0].err = refused },
			"advertised address", "wrong: connection refused…advertised.listeners"},
		{"no topic", func(f *kafkaFacts, _ *config.Config) { f.topics[0].err = kafkaconn.ErrNoTopic }, "topic", "wrong: does not exist → create it"},
		{"a topic that may not be seen", func(f *kafkaFacts, _ *config.Config) { f.topics[0].err = kafka.TopicAuthorizationFailed }, "topic", "wrong: it does not exist, or this user may not describe it"},
		{"a topic", func(*kafkaFacts, *config.Config) {}, "topic", "ok: 2 partitions, replication factor 3, min.insync.replicas 2"},
		{"one copy", func(f *kafkaFacts, _ *config.Config) {
			f.topics[0].partitions[1].Replicas, f.topics[0].partitions[1].Isr = make([]kafka.Broker, 1), make([]kafka.Broker, 1)
		}, "topic", "warning: …replication factor 1"},
		{"no leader", func(f *kafkaFacts, _ *config.Config) { f.topics[0].partitions[1].Leader = kafka.Broker{} }, "topic", "wrong: without a leader: partition 1"},
		{"replicas are away", func(f *kafkaFacts, _ *config.Config) { f.topics[0].partitions[0].Isr = make([]kafka.Broker, 2) }, "topic", "warning: replicas are behind or unavailable: partition 0"},
		{"as many in sync as there are", func(f *kafkaFacts, _ *config.Config) { f.topics[0].settings["min.insync.replicas"] = "3" }, "topic", "warning: …stops all writes"},
		{"deleted", func(*kafkaFacts, *config.Config) {}, "cleanup.policy", "ok: delete"},
		{"no right to the settings", func(f *kafkaFacts, _ *config.Config) { f.topics[0].settingsErr = kafka.TopicAuthorizationFailed }, "settings", "not checked: no right…DescribeConfigs"},

		{"kept without end", func(*kafkaFacts, *config.Config) {}, "retention", "ok: without end"},
		{"kept for long", func(f *kafkaFacts, _ *config.Config) {
			f.topics[0].settings["retention.ms"] = fmt.Sprint((400 * units.Day).Milliseconds())
		},
			"retention", "ok: events are kept for 400d: longer"},
		{"kept for a month", func(f *kafkaFacts, _ *config.Config) {
			f.topics[0].settings["retention.ms"] = fmt.Sprint((33 * units.Day).Milliseconds())
		},
			"retention", "warning: events are kept for 33d, shorter than windows are open: yearly (367d12h)…rebuilt…31752000000"},
		{"kept by size", func(f *kafkaFacts, _ *config.Config) { f.topics[0].settings["retention.bytes"] = "1073741824" },
			"retention", "warning: retention.bytes: a partition keeps 1GiB…\nok: without end"},

		{"batches", func(*kafkaFacts, *config.Config) {}, "max.message.bytes", "ok: 1.0MiB"},
		{"batches beyond memory", func(f *kafkaFacts, _ *config.Config) { f.topics[0].settings["max.message.bytes"] = "16777217" },
			"max.message.bytes", "warning: 16.0MiB: …would be dead letters → raise fold_memory to 257MiB"},

		{"dead letters", func(*kafkaFacts, *config.Config) {}, "dead letters", "ok: 2 partitions"},
		{"no dead letters yet", func(f *kafkaFacts, _ *config.Config) { f.topics[0].deadLetters.err = kafkaconn.ErrNoTopic }, "dead letters", "ok: does not exist: it would be created with 2 partitions"},
		{"dead letters that may not be seen", func(f *kafkaFacts, _ *config.Config) { f.topics[0].deadLetters.err = kafka.TopicAuthorizationFailed }, "dead letters", "wrong: it does not exist, or this user may not describe it"},
		{"compacted dead letters", func(f *kafkaFacts, _ *config.Config) { f.topics[0].deadLetters.settings["cleanup.policy"] = "compact" },
			"dead letters", "warning: cleanup.policy=compact"},

		{"rights", func(*kafkaFacts, *config.Config) {}, "rights", "ok: none is missing"},
		{"a right is missing", func(f *kafkaFacts, _ *config.Config) { f.missing = topics.Needs("g", "points")[:1] }, "rights",
			"wrong: no right to Read, which is needed to share the partitions and commit → kafka-acls --add --allow-principal User:… --operation Read --group g"},
		{"a right that is only useful", func(f *kafkaFacts, _ *config.Config) { f.missing = topics.Needs("g", "points")[3:4] }, "rights", "warning: no right to DescribeConfigs"},
		{"rights that aren't told", func(f *kafkaFacts, _ *config.Config) { f.rightsErr = refused }, "rights", "not checked: connection refused"},
		{"a broker that refuses", func(f *kafkaFacts, _ *config.Config) { f.bootstrap[0].err = &kafkaconn.Refusal{}; f.err = refused }, "brokers", "wrong: …docs/security.md"},

		{"a session", func(*kafkaFacts, *config.Config) {}, "session timeout", "ok: 10s, of 6s to 30m"},
		{"a session, without rights", func(f *kafkaFacts, _ *config.Config) { f.brokers[0].sessionsErr = kafka.ClusterAuthorizationFailed },
			"session timeout", "not checked: …10s"},

		{"no group", func(*kafkaFacts, *config.Config) {}, "group", "ok: not there yet"},
		{"a group of ours", func(f *kafkaFacts, _ *config.Config) {
			f.group = groupFacts{Group: kafkaconn.Group{State: "Stable", Kind: "consumer", Shares: "roundrobin", Members: []string{"standings at 10.0.0.1"}}}
		}, "group", "ok: 1 member, stable: standings at 10.0.0.1; another one shares its partitions"},
		{"a group with another program that shares alike", func(f *kafkaFacts, _ *config.Config) {
			f.group = groupFacts{Group: kafkaconn.Group{State: "Stable", Kind: "consumer", Shares: "roundrobin", Members: []string{"standings at 10.0.0.1", "app at 10.0.0.2"}}}
		}, "group", "wrong: it has members of another program…: app at 10.0.0.2"},
		{"a group of connectors", func(f *kafkaFacts, _ *config.Config) {
			f.group = groupFacts{Group: kafkaconn.Group{State: "Stable", Kind: "connect", Shares: "sessioned", Members: []string{"x", "y"}}}
		}, "group", `wrong: its 2 members are of type "connect"`},
		{"a group of the new kind", func(f *kafkaFacts, _ *config.Config) { f.group.Listed = true }, "group", "wrong: …uses another protocol: the consumer waits…group.protocol=consumer"},
		{"a group that may not be seen", func(f *kafkaFacts, _ *config.Config) { f.group.err = kafka.GroupAuthorizationFailed }, "group", "not checked: …describe the group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, cfg := aCluster(), configured(t)
			c.change(f, cfg)
			holds(t, judged(f, cfg, nil), c.check, c.want)
		})
	}
}

func TestWhatCheckSaysOfStarts(t *testing.T) {
	gap := &health.Halt{Reason: health.HaltGap, What: "the events of points/0 are gone", Remedy: "restore them"}
	partial := checkedAt.UnixMilli()
	for _, c := range []struct {
		name   string
		change func(*topicFacts)
		want   string
	}{
		{"from the ledger", func(*topicFacts) {}, "ok: continues from the ledger: partitions 0 at 480, 1 at 7; 20 records to read"},
		{"first", func(f *topicFacts) {
			f.outlook = []locate.Outlook{{Why: locate.First, At: 100, Partial: partial}, {Why: locate.First}}
		}, "ok: first start (start: window): partitions 0 at 100, 1 at 0; 407 records to read; windows that began before 2100-03-10 12:00:00Z"},
		{"lost, and added", func(f *topicFacts) {
			f.outlook = []locate.Outlook{{Why: locate.Lost, At: 100}, {Why: locate.Added}}
		}, "ok: added partitions start: partition 1 at 0; 7 records to read\nwarning: Redis has no position…partition 0 at 100"},
		{"over a gap", func(f *topicFacts) { f.outlook[0].Why = locate.OverGap },
			"ok: continues from the ledger: partition 1…\nwarning: events are gone from the log; continues because of on_gap: partition 0 at 480"},
		{"a halt", func(f *topicFacts) { f.outlook[0] = locate.Outlook{Why: locate.Halts, Halt: gap} },
			"ok: …partition 1 at 7…\nwrong: partition 0 would halt (gap): the events of points/0 are gone → restore them"},
		{"halts", func(f *topicFacts) {
			f.outlook[0], f.outlook[1] = locate.Outlook{Why: locate.Halts, Halt: gap}, locate.Outlook{Why: locate.Halts, Halt: gap}
		},
			"wrong: partition 0 and 1 more would halt (gap)"},
		{"another schema", func(f *topicFacts) {
			h := &health.Halt{Reason: health.HaltSchema, What: "long", Remedy: "words"}
			f.outlook[0], f.outlook[1] = locate.Outlook{Why: locate.Halts, Halt: h}, locate.Outlook{Why: locate.Halts, Halt: h}
		}, "wrong: partition 0 and 1 more would halt (schema): see schema, below"},
		{"without leaders", func(f *topicFacts) { f.logsErr = kafka.LeaderNotAvailable }, "wrong: "},
		{"without a right to the group", func(f *topicFacts) { f.committedErr = kafka.GroupAuthorizationFailed }, "not checked: "},
		{"many", func(f *topicFacts) {
			f.logs, f.outlook = nil, nil
			for range 40 {
				f.logs, f.outlook = append(f.logs, kafkaconn.Log{End: 9}), append(f.outlook, locate.Outlook{Why: locate.FromLedger, At: 8})
			}
		}, "5 at 8 and 34 more; 40 records to read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := aCluster()
			c.change(&f.topics[0])
			holds(t, judged(f, configured(t), nil), "start", c.want)
		})
	}
	holds(t, judged(aCluster(), configured(t), errors.New("away")), "start", "not checked: unknown without Redis")
}
