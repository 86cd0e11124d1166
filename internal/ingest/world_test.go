package ingest

// This file has a Kafka (franz-go's fake broker), the tests' standings, and consumers or single workers between
// them.

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// TestMain runs the tests with one shard and again with five. Benchmarks and fuzz tests run once.
func TestMain(m *testing.M) { goleak.VerifyTestMain(onOneShardAndOnFive{m}) }

type onOneShardAndOnFive struct{ *testing.M }

func (m onOneShardAndOnFive) Run() int {
	code := m.M.Run()
	once := flag.Lookup("test.bench").Value.String() + flag.Lookup("test.fuzz").Value.String() + flag.Lookup("test.list").Value.String()
	if of = 5; code == 0 && once == "" && !testing.Short() {
		// Shards without events are compared once a second, so most of a test's time is waiting.
		if parallel := flag.Lookup("test.parallel").Value; parallel.(flag.Getter).Get().(int) < 4 {
			_ = parallel.Set("4")
		}
		code = m.M.Run()
	}
	return code
}

// oneShard skips a test if there are several shards.
func oneShard(t testing.TB, why string) {
	t.Helper()
	if of > 1 {
		t.Skip(why)
	}
}

// detecting is true if the race detector is on.
var detecting bool

// fewer returns a quarter of n with -short and with the race detector, which takes several times as long per
// event: make test-all runs these tests with all of n.
func fewer(n int) int {
	if detecting || testing.Short() {
		return n / 4
	}
	return n
}

const topic = "events"

// world is the environment of one test.
type world struct {
	t         testing.TB
	cluster   *kfake.Cluster
	client    *kgo.Client
	transport *kafka.Transport
	standings *fake
	stats     *counts.Stats
	logs      *observer.ObservedLogs
	config    Config
	want      board // the expected boards
	calendar  periods.Calendar
	replays   *Consumer // of the last replay
	live      sync.Map  // *Consumer → *atomic.Int32: running workers
	committed struct {
		sync.Mutex
		all map[int]int64
		err error
	}
}

func newWorld(t testing.TB, partitions int) *world {
	t.Helper()
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), topic, event.DeadLetterTopic(topic)),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}),
	)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	address := cluster.ListenAddrs()[0]
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond, MetadataTopics: []string{topic, event.DeadLetterTopic(topic)}}
	t.Cleanup(transport.CloseIdleConnections)
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	core, logs := observer.New(zapcore.DebugLevel)
	w := &world{t: t, cluster: cluster, transport: transport, standings: newFake(), stats: new(counts.Stats), logs: logs, want: board{}, calendar: calendar}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("shards: %d", of)
			for _, e := range logs.All() {
				t.Log(e.Time.Format("05.000"), e.Level, e.Message, e.ContextMap())
			}
		}
	})
	// Timeouts are longer than the machine may stall. A test of a timeout sets its own.
	w.config = Config{
		Kafka: Kafka{
			Brokers: []string{address}, Transport: transport, Dialer: &kafka.Dialer{Timeout: 20 * time.Second}, Refusal: func(context.Context) error { return nil },
			Topics: []string{topic}, Group: "group",
			FetchBytes: 64 << 10,
		},
		Timing: Timing{
			FetchWait: 100 * time.Millisecond, SessionTimeout: 20 * time.Second,
			Heartbeat: 200 * time.Millisecond, Timeout: 20 * time.Second, CommitInterval: 50 * time.Millisecond,
			ShutdownTime: 50 * time.Second,
			PieceTime:    5 * time.Millisecond,
		},
		Starting: Starting{Start: start.Where{From: start.FromEarliest}},
		Counting: Counting{
			Rules:     fold.BuiltIn(calendar, (400 * 24 * time.Hour).Milliseconds(), periods.Weekly, periods.Monthly),
			Retention: map[periods.Period]time.Duration{periods.Weekly: 60 * 24 * time.Hour, periods.Monthly: 400 * 24 * time.Hour},
			Events:    event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 1 << 40, MaxFuture: 300_000},
		},
		Owner:      "me",
		FoldMemory: 44 << 20,
		Standings:  w.standings.standings(), Log: zap.New(core), Stats: w.stats,
	}
	w.client = w.producer()
	return w
}

// producer returns a client that writes to the topic's partitions by number.
func (w *world) producer() *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(10*time.Millisecond))
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// earned is one valid event.
type earned struct {
	User   string `json:"user_id"`
	Points int64  `json:"points"`
	At     int64  `json:"occurred_at"`
	Board  string `json:"board,omitempty"`
}

// counts adds an event to the expected boards.
func (w *world) counts(e earned) {
	board := e.Board
	if board == "" {
		board = "global"
	}
	for _, p := range w.config.Rules.Periods {
		win, _, err := p.Rule.At(e.At)
		require.NoError(w.t, err)
		listing := ledger.Window{Board: board, Period: string(win.Period), Name: win.Name}.Listing()
		if w.want[listing] == nil {
			w.want[listing] = map[string]total{}
		}
		t, ok := w.want[listing][e.User]
		if !ok {
			t.time = ledger.NoTime
		}
		t.points += e.Points
		if e.Points > 0 {
			t.time = max(t.time, e.At)
		}
		w.want[listing][e.User] = t
	}
}

// send publishes valid events to a partition, and expects them to count.
func (w *world) send(partition int, all ...earned) {
	w.t.Helper()
	var records []*kgo.Record
	for _, e := range all {
		w.counts(e)
		value, err := json.Marshal(e)
		require.NoError(w.t, err)
		records = append(records, &kgo.Record{Partition: int32(partition), Value: value})
	}
	require.NoError(w.t, w.client.ProduceSync(context.Background(), records...).FirstErr())
}

// sendRaw publishes values unchanged; nil is a tombstone.
func (w *world) sendRaw(partition int, values ...[]byte) {
	w.t.Helper()
	for _, v := range values {
		require.NoError(w.t, w.client.ProduceSync(context.Background(), &kgo.Record{Partition: int32(partition), Value: v}).FirstErr())
	}
}

// sendAll publishes values to partition 0 unchanged, in one call.
func (w *world) sendAll(values [][]byte) {
	w.t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Value: v})
	}
	require.NoError(w.t, w.client.ProduceSync(context.Background(), records...).FirstErr())
}

// some returns n events of n members, from a minute ago.
func some(prefix string, n int, points int64) (all []earned) {
	at := time.Now().Add(-time.Minute).UnixMilli()
	for i := range n {
		all = append(all, earned{User: prefix + strconv.Itoa(i), Points: points, At: at + int64(i)})
	}
	return all
}

// deadLetters returns the records of partition 0 of the dead-letter topic, as their headers plus the value.
func (w *world) deadLetters() (all []map[string]string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		event.DeadLetterTopic(topic): {0: kgo.NewOffset().AtStart()},
	}), kgo.FetchMaxWait(50*time.Millisecond))
	require.NoError(w.t, err)
	defer c.Close()
	end := w.end(event.DeadLetterTopic(topic), 0)
	for int64(len(all)) < end {
		fetches := c.PollFetches(ctx)
		require.NoError(w.t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			l := map[string]string{"value": string(r.Value), "key": string(r.Key)}
			for _, h := range r.Headers {
				l[h.Key] = string(h.Value)
			}
			all = append(all, l)
		})
	}
	return all
}

// end returns the end of a partition's log. After that, the transport knows the topic's leaders: its first
// metadata request may fail if the machine stalls, and with it a test that doesn't retry.
func (w *world) end(topic string, partition int) int64 {
	w.t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(w.config.Brokers...), Transport: w.config.Transport, Timeout: 20 * time.Second}
	end := int64(0)
	eventually(w.t, "the leader says where the log ends", func() bool {
		all, err := kafkaconn.Logs(context.Background(), client, topic, partition)
		end = all[partition].End
		return err == nil
	})
	return end
}

// consumer starts a consumer. stop ends it as SIGTERM does, and waits for it.
func (w *world) consumer(change func(*Config)) (c *Consumer, stop func() error) {
	w.t.Helper()
	cfg := w.config
	if change != nil {
		change(&cfg)
	}
	c = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case err = <-done:
			case <-time.After(time.Minute):
				err = fmt.Errorf("the consumer didn't end")
			}
			addsUp(w.t, c.Stats)
		})
		return err
	}
	w.t.Cleanup(func() { _ = stop() })
	return c, stop
}

// running is one worker without a group.
type running struct {
	*worker
	consumer *Consumer
	live     *atomic.Int32
	cancel   context.CancelCauseFunc
	done     chan struct{}
}

// worker starts a worker as a generation would.
func (w *world) worker(partition int, change func(*Config)) *running {
	w.t.Helper()
	cfg := w.config
	if change != nil {
		change(&cfg)
	}
	c := New(cfg)
	return w.workerOf(c, partition)
}

func (w *world) workerOf(c *Consumer, partition int) *running {
	com := commits.New(func(all map[string]map[int]kafkaconn.Commit) error {
		w.committed.Lock()
		defer w.committed.Unlock()
		if w.committed.err != nil {
			return w.committed.err
		}
		if w.committed.all == nil {
			w.committed.all = map[int]int64{}
		}
		for p, c := range all[topic] {
			w.committed.all[p] = c.Offset
		}
		return nil
	}, c.Log)
	all := c.assigned(&group.Generation{Assignments: map[string][]int{topic: {partition}}}, com)
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &running{worker: all[0], consumer: c, cancel: cancel, done: make(chan struct{})}
	live, _ := w.live.LoadOrStore(c, new(atomic.Int32))
	r.live = live.(*atomic.Int32)
	r.live.Add(1)
	go func() { r.run(ctx); r.live.Add(-1); close(r.done) }()
	w.t.Cleanup(func() { r.stop(w.t) })
	return r
}

// stop ends the worker's generation, and verifies that it releases all memory.
func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel(errGenerationEnded)
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		t.Error("the worker didn't end with its generation")
		return
	}
	addsUp(t, r.stats)
	if r.live.Load() == 0 {
		// The memory of an abandoned fetch is released when its connection ends.
		eventually(t, "all memory is given back", func() bool { return r.consumer.Budget.Used() == 0 })
	}
}

// addsUp compares the counts of events with the number of consumed events. It may be called at any time.
func addsUp(t testing.TB, s *counts.Stats) {
	t.Helper()
	c := s.Count()
	sum := c.Applied + c.Late + c.Early + c.Skipped + c.Repeated + c.Duplicates
	for _, n := range c.Dead {
		sum += n
	}
	if sum != c.Consumed {
		t.Errorf("%d events were consumed, and the results are of %d: %+v", c.Consumed, sum, c)
	}
}

// eventually waits until a condition is true, for at most a minute.
func eventually(t testing.TB, what string, came func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !came(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// reaches waits until the ledger is at the log's end, and compares the boards with the expected ones.
func (w *world) reaches(partitions ...int) {
	w.t.Helper()
	for _, p := range partitions {
		end := strconv.FormatInt(w.end(topic, p), 10)
		eventually(w.t, fmt.Sprintf("partition %d stands at %s", p, end), func() bool { return w.standings.at(p) == end })
	}
	w.standings.do(func() {
		if d := differences(w.want, w.standings.boards()); d != "" {
			w.t.Fatalf("the boards differ:\n%s", d)
		}
	})
}

// counted waits until the results of n events are final and counted: a worker counts only after Redis's answer,
// and the boards may already show the events before.
func (w *world) counted(n int64) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d events are counted", n), func() bool { return w.stats.Count().Consumed == n })
}

// logged returns the number of log lines that contain a text.
func (w *world) logged(text string) (n int) {
	for _, e := range w.logs.All() {
		if strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}

func (w *world) said(n int, text string) {
	w.t.Helper()
	if got := w.logged(text); got != n {
		w.t.Errorf("%q was logged %d times, want %d", text, got, n)
	}
}
