package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

func execute(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Execute(t, Command, environ, args...)
}

// checkedAt is a fixed time for reports.
var checkedAt = time.Date(2100, 3, 10, 12, 0, 0, 0, time.UTC)

func lineText(l workers.Line) string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// checked holds a Kafka and a Redis of the test's own, and the environment that points check at them.
type checked struct {
	kafka   *testenv.KafkaServer
	redis   *testenv.RedisServer
	admin   *kadm.Client
	client  *redis.Client
	environ []string
}

// persistent holds the arguments of a Redis server with which check finds no fault.
var persistent = []string{"--appendonly", "yes", "--lazyfree-lazy-expire", "yes", "--lazyfree-lazy-server-del", "yes"}

func newChecked(t *testing.T) *checked {
	t.Helper()
	w := &checked{kafka: testenv.PrivateKafka(t, map[string]string{"group.max.session.timeout.ms": "20000"}), redis: testenv.PrivateRedis(t, persistent...)}
	w.admin, w.client = kadm.NewClient(w.kafka.Client(t)), w.redis.Client(t)
	w.environ = []string{
		"STANDINGS_KAFKA_BROKERS=" + w.kafka.Addr(), "STANDINGS_REDIS_ADDRESSES=" + w.redis.Addr(),
		"STANDINGS_LISTEN=off", "STANDINGS_KAFKA_TIMEOUT=30s", "STANDINGS_REDIS_TIMEOUT=30s",
	}
	return w
}

// is returns everything that check must not change: keys, topics, groups and their offsets.
func (w *checked) is(t *testing.T) string {
	t.Helper()
	var all []string
	keys, err := w.client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		switch {
		case strings.HasSuffix(key, ":workers"): // running consumers write these
		case strings.Contains(key, ":~try:") && w.client.PTTL(t.Context(), key).Val() != -1: // left on a missing right; expires, or just has
		default:
			all = append(all, fmt.Sprintf("%s %x", key, w.client.Dump(t.Context(), key).Val()))
		}
	}
	topics, err := w.admin.ListTopicsWithInternal(t.Context())
	require.NoError(t, err)
	for _, topic := range topics {
		all = append(all, fmt.Sprint(topic.Topic, " ", len(topic.Partitions)))
	}
	groups, err := w.admin.ListGroups(t.Context())
	require.NoError(t, err)
	for _, group := range groups.Sorted() {
		offsets, err := w.admin.FetchOffsets(t.Context(), group.Group)
		require.NoError(t, err)
		all = append(all, fmt.Sprint(group.Group, " ", group.State, " ", offsets.Offsets().Sorted()))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// finds runs check and verifies that it changed nothing, and that exactly the wanted findings are warnings
// or wrong, as "check subject: outcome".
func (w *checked) finds(t *testing.T, change []string, want ...string) *checkReport {
	t.Helper()
	before := w.is(t)
	r := checkWith(t, append(slices.Clone(w.environ), change...))
	if after := w.is(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	r.are(t, want...)
	return r
}

func checkWith(t *testing.T, environ []string) *checkReport {
	t.Helper()
	code, stdout, stderr := execute(t, environ, "check", "--json")
	var r checkReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if wrong := code != cli.ExitOK; wrong != (r.Result == outcomeWrong) || code == cli.ExitUsage || stderr != "" {
		t.Errorf("code %d of a result that is %s, and %q", code, r.Result, stderr)
	}
	return &r
}

// are verifies that exactly the wanted findings are not ok.
func (r *checkReport) are(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		if f.Result != outcomeOK {
			got = append(got, strings.TrimSpace(f.Check+" "+f.Subject)+": "+string(f.Result))
		}
	}
	if !slices.Equal(got, want) {
		var said []string
		for _, f := range r.Findings {
			said = append(said, fmt.Sprintf("%s %s: %s: %s", f.Check, f.Subject, f.Result, f.Found))
		}
		t.Errorf("not ok are\n%s\nwant\n%s\nof\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(said, "\n"))
	}
}

// said verifies what a check found about a subject.
func (r *checkReport) said(t *testing.T, check, subject, want string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check == check && f.Subject == subject && strings.Contains(f.Found+" → "+f.ToDo, want) {
			return
		}
	}
	t.Errorf("%s of %q doesn't say %q: %+v", check, subject, want, r.Findings)
}

func (w *checked) publish(t *testing.T, topic string, n int) {
	t.Helper()
	client := w.kafka.Client(t, kgo.DefaultProduceTopic(topic))
	for i := range n {
		value := fmt.Appendf(nil, `{"user_id":"u%d","points":5}`, i)
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Value: value}).FirstErr())
	}
}

// consumes runs a consumer, as run does, until stop is called.
func (w *checked) consumes(t *testing.T, change ...string) (stop func()) {
	t.Helper()
	l, err := config.Load("", append(slices.Clone(w.environ), change...))
	require.NoError(t, err)
	cfg := l.Config
	settings, err := cfg.Kafka.Connection()
	require.NoError(t, err)
	brokers, err := w.admin.BrokerMetadata(t.Context())
	require.NoError(t, err)
	client, err := app.NewRedis(cfg, nil)
	require.NoError(t, err)
	all, err := app.NewBoards(cfg, client, brokers.Cluster)
	require.NoError(t, err)
	transport := app.NewTransport(cfg, settings)
	consumer, err := app.NewConsumer(cfg, settings, transport, all, nil, app.BeforeCounting{}, zap.NewNop(), new(counts.Stats))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
		require.NoError(t, client.Close())
	}
}

// until waits until a condition becomes true.
func until(t *testing.T, what string, came func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !came(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// forever holds settings of a topic with which check finds no fault, except for its single replica: the
// tests' Kafka has one broker.
var forever = map[string]string{"retention.ms": "-1"}

func (w *checked) counted(t *testing.T) map[string]string {
	t.Helper()
	return w.client.HGetAll(t.Context(), "lb:{0}:ledger").Val()
}

func TestCheckOfARealKafkaAndRedisFromFirstLookToRunning(t *testing.T) {
	w := newChecked(t)
	r := w.finds(t, nil, "topic points: wrong", "if Redis is lost: not checked")
	r.said(t, "group", "standings", "no group was used on this cluster yet")
	r.said(t, "topic", "points", "does not exist")

	w.kafka.CreateTopic(t, "points", 2, forever)
	w.publish(t, "points", 20)
	r = w.finds(t, nil, "topic points: warning")
	r.said(t, "start", "points", "first start (start: window): partitions 0 at 0, 1 at 0; 20 records to read")
	r.said(t, "dead letters", "points.dlq", "it would be created with 2 partitions")
	r.said(t, "schema", "", "none yet")
	if len(r.Starts) != 2 || *r.Starts[0].Start != "first_start" || *r.Starts[0].Offset != 0 || r.Starts[0].Position != nil {
		t.Errorf("%+v", r.Starts)
	}

	stop := w.consumes(t)
	until(t, "all is counted", func() bool {
		ends, err := w.admin.ListEndOffsets(t.Context(), "points")
		require.NoError(t, err)
		all := w.counted(t)
		done := true
		ends.Each(func(o kadm.ListedOffset) {
			done = done && all[fmt.Sprintf("points/%d", o.Partition)] == fmt.Sprint(o.Offset)
		})
		return done && len(all) == 2
	})
	until(t, "the worker has written its line", func() bool { return w.client.HLen(t.Context(), "lb:{0}:workers").Val() == 2 })
	until(t, "all is committed", func() bool {
		offsets, err := w.admin.FetchOffsets(t.Context(), "standings")
		require.NoError(t, err)
		committed := int64(0)
		offsets.Each(func(o kadm.OffsetResponse) { committed += o.At })
		return committed == 20
	})
	r = w.finds(t, nil, "topic points: warning")
	r.said(t, "group", "standings", "1 member, stable: standings at ") // the broker sees the member at another address
	r.said(t, "group", "standings", "; another one shares its partitions")
	r.said(t, "consumer", "", "running in the last 3s: ")
	r.said(t, "start", "points", "continues from the ledger: partitions 0 at ")
	r.said(t, "start", "points", "; 0 records to read")
	r.said(t, "schema", "", "with this configuration")
	stop()
	r = w.finds(t, nil, "topic points: warning")
	r.said(t, "group", "standings", "no members; empty")

	code, stdout, stderr := execute(t, w.environ, "check")
	if code != cli.ExitOK || stderr != "" || !strings.Contains(stdout, "\nThe consumer would work: 1 warning, ") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	for line := range strings.Lines(stdout) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > usualWidth {
			t.Errorf("wider than %d: %s", usualWidth, line)
		}
	}
	w.findsFaults(t)
}

// findsFaults creates each fault and verifies what check finds.
func (w *checked) findsFaults(t *testing.T) {
	t.Helper()
	const one = "topic points: warning" // because the topic has one replica
	ledger := w.counted(t)
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		name   string
		make   func(t *testing.T)
		change []string
		want   []string
	}{
		{"a compacted topic", func(t *testing.T) {
			w.kafka.CreateTopic(t, "compact", 1, map[string]string{"cleanup.policy": "compact", "retention.ms": "-1"})
		},
			[]string{"STANDINGS_KAFKA_TOPICS=compact"}, []string{"topic compact: warning", "cleanup.policy compact: wrong", "ledger: warning"}},
		{"a short retention", func(t *testing.T) { w.kafka.CreateTopic(t, "short", 1, nil) },
			[]string{"STANDINGS_KAFKA_TOPICS=short"}, []string{"topic short: warning", "retention short: warning", "ledger: warning"}},
		{"large batches", func(t *testing.T) {
			w.kafka.CreateTopic(t, "large", 1, map[string]string{"retention.ms": "-1", "max.message.bytes": "4194304"})
		}, []string{"STANDINGS_KAFKA_TOPICS=large", "STANDINGS_FOLD_MEMORY=44MiB"}, []string{"topic large: warning", "max.message.bytes large: warning", "ledger: warning"}},
		{"few and small dead letters", func(t *testing.T) {
			w.kafka.CreateTopic(t, "letters", 2, forever)
			w.kafka.CreateTopic(t, "letters.dlq", 1, map[string]string{"max.message.bytes": "1000"})
		}, []string{"STANDINGS_KAFKA_TOPICS=letters"}, []string{"topic letters: warning", "dead letters letters.dlq: warning", "dead letters letters.dlq: warning", "ledger: warning"}},
		{"somebody else's group", func(t *testing.T) {
			w.client.Del(t.Context(), "lb:{0}:workers") // the workers of this group have just stopped
			client := w.kafka.Client(t, kgo.ConsumerGroup("theirs"), kgo.ConsumeTopics("points"), kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(10*time.Second))
			client.PollRecords(t.Context(), 1)
		}, []string{"STANDINGS_KAFKA_GROUP=theirs"}, []string{one, "group theirs: wrong"}},
		{"a long session", func(*testing.T) {}, []string{"STANDINGS_KAFKA_SESSION_TIMEOUT=25s"}, []string{one, "session timeout broker 1: wrong"}},
		{"one address that is closed", func(*testing.T) {}, []string{"STANDINGS_KAFKA_BROKERS=" + clitest.ClosedPort(t) + "," + w.kafka.Addr()}, []string{"", one}},
		{"Kafka away", func(*testing.T) {}, []string{"STANDINGS_KAFKA_BROKERS=" + clitest.ClosedPort(t)},
			[]string{"", "topics, group, start: not checked", "if Redis is lost: not checked"}},
		{"Redis away", func(*testing.T) {}, []string{"STANDINGS_REDIS_ADDRESSES=" + clitest.ClosedPort(t)}, []string{
			one, "start points: not checked", "server: wrong", "rights, schema, ledger: not checked", "if Redis is lost: not checked"}},
		{"Redis silent", func(*testing.T) {}, []string{"STANDINGS_REDIS_ADDRESSES=" + clitest.SilentPort(t), "STANDINGS_REDIS_TIMEOUT=200ms"}, []string{
			one, "start points: not checked", "server: wrong", "rights, schema, ledger: not checked", "if Redis is lost: not checked"}},
		{"a wrong password", func(*testing.T) {}, []string{"STANDINGS_REDIS_USERNAME=nobody", "STANDINGS_REDIS_PASSWORD=wrong"}, []string{
			one, "start points: not checked", "server: wrong", "rights, schema, ledger: not checked", "if Redis is lost: not checked"}},
		{"another configuration", func(*testing.T) {}, []string{"STANDINGS_TIME_ZONE=Europe/Berlin"}, []string{one, "start points: wrong", "schema: wrong"}},
		{"a season and windows of a length ahead", func(*testing.T) {}, []string{
			"STANDINGS_PERIODS_SEASON_START=" + in(24*time.Hour), "STANDINGS_PERIODS_SEASON_END=" + in(48*time.Hour),
			"STANDINGS_PERIODS_SPRINT_EVERY=72h", "STANDINGS_PERIODS_SPRINT_FROM=" + in(24*time.Hour),
		}, []string{one}},
		{"a season that has begun", func(*testing.T) {}, []string{"STANDINGS_PERIODS_SEASON_START=" + in(-time.Hour), "STANDINGS_PERIODS_SEASON_END=" + in(48*time.Hour)},
			[]string{one, "schema: warning"}},
		{"a calendar period", func(*testing.T) {}, []string{"STANDINGS_PERIODS_DAILY_ENABLED=true"}, []string{one, "schema: warning"}},
		{"a period less", func(*testing.T) {}, []string{"STANDINGS_PERIODS_YEARLY_ENABLED=false"}, []string{one, "start points: wrong", "schema: wrong"}},
		{"eviction", func(t *testing.T) { w.set(t, "maxmemory-policy", "volatile-lru") }, nil, []string{one, "eviction: wrong"}},
		{"almost full", func(t *testing.T) {
			used, err := strconv.Atoi(w.client.InfoMap(t.Context(), "memory").Val()["Memory"]["used_memory"])
			require.NoError(t, err)
			w.set(t, "maxmemory", strconv.Itoa(used/2)) // the memory of connections varies
		}, nil, []string{one, "memory: warning", "rights: wrong"}},
		{"no persistence", func(t *testing.T) { w.set(t, "appendonly", "no") }, nil, []string{one, "persistence: warning"}},
		{"blocking expiry", func(t *testing.T) { w.set(t, "lazyfree-lazy-expire", "no") }, nil, []string{one, "lazyfree: warning"}},
		{"too few replicas", func(t *testing.T) { w.set(t, "min-replicas-to-write", "1") }, nil, []string{one, "rights: wrong"}},
		{"a missing right", func(t *testing.T) {
			w.user(t, "poor", "on", ">x", "~lb:*", "+@all", "-zrevrank")
		}, []string{"STANDINGS_REDIS_USERNAME=poor", "STANDINGS_REDIS_PASSWORD=x"}, []string{one, "rights: wrong"}},
		{"no right to look", func(t *testing.T) {
			w.user(t, "blind", "on", ">x", "~lb:*", "+@all", "-config", "-info")
		}, []string{"STANDINGS_REDIS_USERNAME=blind", "STANDINGS_REDIS_PASSWORD=x", "STANDINGS_REDIS_ASSUME_NOEVICTION=true"},
			[]string{one, "server: not checked", "eviction: warning", "memory, persistence: not checked", "lazyfree: not checked"}},
		{"a torn ledger", func(t *testing.T) { w.hset(t, "points/0", "torn:"+ledger["points/0"]) }, nil, []string{one, "start points: wrong", "ledger: wrong"}},
		{"past the log's end", func(t *testing.T) { w.hset(t, "points/0", "1000") }, nil, []string{one, "start points: wrong"}},
		{"a ledger that is lost", func(t *testing.T) { w.client.Del(t.Context(), "lb:{0}:ledger") }, nil, []string{one, "start points: wrong"}},
		{"Redis lost", func(*testing.T) {}, []string{"STANDINGS_REDIS_PREFIX=other"}, []string{one, "start points: warning"}},
		{"a gap", func(t *testing.T) {
			w.publish(t, "points", 40)
			ends, err := w.admin.ListEndOffsets(t.Context(), "points")
			require.NoError(t, err)
			if _, err := w.admin.DeleteRecords(t.Context(), ends.Offsets()); err != nil {
				t.Fatal(err)
			}
		}, nil, []string{one, "start points: wrong", "if Redis is lost: warning"}},
		{"a gap that is passed over", func(*testing.T) {}, []string{"STANDINGS_ON_GAP=continue"}, []string{one, "start points: warning", "if Redis is lost: warning"}},
		{"a board that is lost, and a partition that has halted for it", func(t *testing.T) {
			w.client.Del(t.Context(), "lb:{0}:"+w.client.HKeys(t.Context(), "lb:{0}:windows").Val()[0])
			line := lineText(workers.Line{Owner: "me:1", Group: "standings", State: workers.StateHalted, Reason: health.HaltBoard, What: "its key is gone", At: time.Now()})
			w.client.HSet(t.Context(), "lb:{0}:workers", "points/1", line)
		}, []string{"STANDINGS_ON_GAP=continue"}, []string{one, "start points: warning", "boards: wrong", "consumer: wrong", "if Redis is lost: warning"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := map[string]string{}
			for _, name := range []string{"maxmemory", "maxmemory-policy", "appendonly", "lazyfree-lazy-expire", "min-replicas-to-write"} {
				maps.Copy(settings, w.client.ConfigGet(t.Context(), name).Val())
			}
			c.make(t)
			want := slices.Clone(c.want)
			if want[0] == "" { // the subject is the address that was chosen just now
				_, address, _ := strings.Cut(c.change[0], "=")
				address, _, several := strings.Cut(address, ",")
				want[0] = "brokers " + address + ": wrong"
				if several {
					want[0] = "brokers " + address + ": warning"
				}
			}
			w.finds(t, c.change, want...)
			for name, value := range settings {
				w.set(t, name, value)
			}
			for field, value := range ledger {
				w.hset(t, field, value)
			}
		})
	}
}

func (w *checked) set(t *testing.T, name, value string) {
	t.Helper()
	require.NoError(t, w.client.ConfigSet(t.Context(), name, value).Err())
}

func (w *checked) hset(t *testing.T, field, value string) {
	t.Helper()
	require.NoError(t, w.client.HSet(t.Context(), "lb:{0}:ledger", field, value).Err())
}

func (w *checked) user(t *testing.T, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	require.NoError(t, w.client.Do(t.Context(), args...).Err())
}

func TestCheckOfAConfigurationThatIsWrongLooksAtNothing(t *testing.T) {
	code, stdout, stderr := execute(t, []string{"STANDINGS_MAX_POINTS=x", "STANDINGS_KAFKA_BROKERS=" + clitest.ClosedPort(t)}, "check")
	if code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "max_points") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}
