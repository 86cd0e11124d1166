package ingest

// This file builds a consumer and the parts of its workers. Each part gets only the dependencies that it uses.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/report"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/ledger"
)

// process holds what the partitions of a process share. Every field is safe for concurrent use.
type process struct {
	memory.Room
	states      *shards.States
	identities  *locate.Identities
	borders     *shards.Borders
	starting    chan struct{} // a token for resolving where a topic's partitions start
	rereads     *rereads
	reconnected atomic.Int64 // counts new connections to the standings
}

// Consumer is one member of the group.
type Consumer struct {
	Config
	process
	shards      shards.All
	kafka       *kafka.Client
	balancer    *group.Balancer
	membership  *group.Tracker
	reporter    *report.Reporter
	deadLetters *deadletter.Topics

	mu      sync.Mutex // guards current and workers: a generation sets them, Snapshot and others read them
	current *group.Generation
	workers []*worker // of the current generation
}

// New returns a consumer. It reads and writes nothing until Run is called.
func New(c Config) *Consumer {
	all := shards.Tagged(c.Standings)
	for i := range all {
		c.Stats.Shard(i) // so that metrics show the shard before its first call
	}
	client := &kafka.Client{Addr: kafka.TCP(c.Brokers...), Transport: kafkaconn.Robust(c.Transport), Timeout: c.Timeout}
	return &Consumer{
		Config: c,
		shards: all,
		process: process{
			borders:  shards.NewBorders(c.Rules, c.Retention, all, c.Log),
			Room:     memory.NewRoom(c.FoldMemory, int64(c.Events.MaxEventBytes)),
			states:   shards.NewStates(all.States),
			starting: make(chan struct{}, 1),
			rereads:  newRereads(),
			identities: locate.NewIdentities(func(ctx context.Context) (map[string]map[int]ledger.Log, error) {
				return kafkaconn.TopicLogs(ctx, client, c.Topics...)
			}),
		},
		kafka:       client,
		balancer:    &group.Balancer{},
		membership:  group.NewTracker(),
		deadLetters: &deadletter.Topics{Client: client, Log: c.Log},
		reporter:    &report.Reporter{Standings: all[0], Group: c.Group, TimeZoneData: c.TimeZoneData, Log: c.Log},
	}
}

// Reconnected records that a new connection to the standings was made: another server may be behind it.
func (c *Consumer) Reconnected() { c.reconnected.Add(1) }

func (c *Consumer) worker(topic string, number int, com *commits.Pending) *worker {
	p := c.partition(topic, number)
	l := health.NewLagTracker()
	s := health.NewStatus(p.Log, c.Owner, c.Group, l)
	w := &worker{Handle: p, shards: c.shards, stats: c.Stats, status: s, lag: l, pipeline: c.pipeline(p, s, l, com)}
	w.locator = c.locator(w.pipeline)
	return w
}

// NewReplay returns a replay. It ignores the settings of c for the group, for commits and for the start.
func NewReplay(c Config) *replay.Replay {
	r, _ := newReplay(c)
	return r
}

// newReplay also returns the consumer whose workers read.
func newReplay(c Config) (r *replay.Replay, of *Consumer) {
	r = replay.New(c.Standings, func(into []shards.Standings) replay.Consumer {
		c.Standings = into
		of = New(c)
		return replay.Consumer{
			Topics: c.Topics, Group: c.Group, Stats: c.Stats, Resolver: of.idleResolver,
			NewWorker: func(p ledger.Partition) replay.RunWorker { return of.replayer(p).run },
		}
	})
	return r, of
}

// replayer returns the worker with which a replay reads a partition.
func (c *Consumer) replayer(p ledger.Partition) *replayer {
	w := c.worker(p.Topic, p.Number, commits.New(nil, c.Log))
	return &replayer{Handle: w.Handle, shards: w.shards, status: w.status, pipeline: w.pipeline}
}

func (c *Consumer) locator(p *pipeline) *locate.Locator {
	return &locate.Locator{
		Resolver: c.resolver(p.Handle, p.status), Shards: c.shards, States: c.states, Books: p.books,
		Commits: p.commits, Status: p.status, Lag: p.lag, Trail: &p.carried.trail, Compare: p.carried.compare,
	}
}

func (c *Consumer) resolver(p *source.Handle, s *health.Status) *locate.Resolver {
	return &locate.Resolver{
		Handle: p, Room: c.Room, Starting: c.starting, Stats: c.Stats, Identities: c.identities, Traces: c.Traces,
		Fetcher:   func() *fetch.Fetcher { return c.fetchSettings().Fetcher(p, c.Room, nil) },
		Throttled: func(d time.Duration) { c.Stats.Throttled.Add(int64(d)); s.Throttled(d) },
		Terms:     c.terms(),
	}
}

// terms returns the configuration's settings for starts.
func (c *Consumer) terms() *start.Terms {
	return &start.Terms{
		Where: c.Start, OnGap: c.OnGap, Kept: c.kept(),
		MaxFuture: c.Events.MaxFuture, Disorder: c.Disorder,
	}
}

// kept returns the periods and how long their windows live.
func (c *Consumer) kept() []start.Kept {
	all := make([]start.Kept, len(c.Rules.Periods))
	for i := range all {
		rule := c.Rules.Periods[i].Rule
		all[i] = start.Kept{Rule: rule, Retention: c.Retention[rule.Name()]}
	}
	return all
}

func (c *Consumer) pipeline(p *source.Handle, s *health.Status, l *health.LagTracker, com *commits.Pending) *pipeline {
	return &pipeline{
		common: common{
			shards: c.shards, stats: c.Stats,
			rereads: c.rereads, reconnected: &c.reconnected,
			borders:   c.borders,
			pieceTime: c.PieceTime, pause: c.Pause,
		},
		lasting: lasting{
			carried: &carried{Handle: p, stats: c.Stats},
			sealed:  new(fold.Sealed),
			known:   &lookBack{},
			books:   &rulebook.Books{Field: p.Field, Own: c.ownBook(), Read: c.readRules, FoldMemory: c.FoldMemory},
		},
		Handle: p, Room: c.Room,
		status: s, lag: l, commits: com,
		outbox: &deadletter.Outbox{
			Partition: p.Partition, Client: p.Kafka, Timeout: c.Timeout, Count: &c.Stats.DeadLetters, Tries: &c.Stats.KafkaTries,
			Remake: c.deadLetters.Remake,
		},
		fetch:    c.fetchSettings(),
		disorder: &disorder{allowed: c.Disorder, log: p.Log, stats: c.Stats},
	}
}

func (c *Consumer) fetchSettings() source.Settings {
	return source.Settings{Bytes: c.FetchBytes, Wait: c.FetchWait}
}

func (c *Consumer) partition(topic string, number int) *source.Handle {
	p := ledger.Partition{Topic: topic, Number: number}
	return &source.Handle{
		Partition: p, Field: p.String(), Kafka: c.kafka, Group: c.Group,
		Log: c.Log.With(zap.String("topic", topic), zap.Int("partition", number)),
	}
}

func (c *Consumer) ownBook() *rulebook.Book {
	return rulebook.New(ledger.Note{Rules: rulebook.FingerprintOf(c.RulesText), Text: c.RulesText}, rulebook.Counting{Events: c.Events, Windows: c.Rules.By(c.borders.Known), Duplicates: c.Duplicates})
}

// readRules parses rules that another process has noted. Their windows also use the settled borders.
func (c *Consumer) readRules(text string) (rulebook.Counting, error) {
	counting, err := c.ReadRules(text)
	counting.Windows = counting.Windows.By(c.borders.Known)
	return counting, err
}

// idleResolver returns a resolver for a topic that has no worker.
func (c *Consumer) idleResolver(topic string) *locate.Resolver {
	return c.resolver(c.partition(topic, 0), health.NewStatus(c.Log, "", "", health.NewLagTracker()))
}

// Outlook evaluates the start table for every partition of a topic, as workers would if they started now, and
// writes nothing. states are those of all shards. It returns an error only if a query fails.
func (c *Consumer) Outlook(ctx context.Context, topic string, states []ledger.State, logs []kafkaconn.Log, committed map[int]kafkaconn.Commit) ([]locate.Outlook, error) {
	return c.idleResolver(topic).Outlook(ctx, c.shards, states, logs, committed)
}

// Reach returns how far back the log of a topic reaches, for the partition that reaches back the least. It
// writes nothing. clock is Redis's. committed are the group's offsets, whose trails have the times of deleted
// records.
func (c *Consumer) Reach(ctx context.Context, topic string, partitions int, committed map[int]kafkaconn.Commit, clock func() time.Time) (locate.Reach, error) {
	return c.idleResolver(topic).Reach(ctx, partitions, committed, clock)
}
