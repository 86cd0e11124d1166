package ingest

// This file builds a consumer and the parts of its workers. Each part gets only the dependencies that it uses.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/ledger"
)

// process holds what the partitions of a process share. Every field is safe for concurrent use.
type process struct {
	room
	states      *states
	identities  *identities
	borders     *borders
	starting    chan struct{} // a token for resolving where a topic's partitions start
	rereads     *rereads
	reconnected atomic.Int64 // counts new connections to the standings
}

// Consumer is one member of the group.
type Consumer struct {
	Config
	process
	shards      shards
	kafka       *kafka.Client
	balancer    *balancer
	membership  *membership
	others      otherGroups
	deadLetters *deadletter.Topics
	trailless   atomic.Bool // the brokers refuse metadata as long as a trail

	mu      sync.Mutex // guards current and workers: a generation sets them, Snapshot and others read them
	current *Generation
	workers []*worker // of the current generation
}

// New returns a consumer. It reads and writes nothing until Run is called.
func New(c Config) *Consumer {
	all := tagged(c.Standings)
	for i := range all {
		c.Stats.Shard(i) // so that metrics show the shard before its first call
	}
	client := &kafka.Client{Addr: kafka.TCP(c.Brokers...), Transport: kafkaconn.Robust(c.Transport), Timeout: c.Timeout}
	return &Consumer{
		Config: c,
		shards: all,
		process: process{
			borders:  newBorders(&c, all),
			room:     newRoom(c.FoldMemory, int64(c.Events.MaxEventBytes)),
			states:   newStates(all.states),
			starting: make(chan struct{}, 1),
			rereads:  newRereads(),
			identities: newIdentities(func(ctx context.Context) (map[string]map[int]ledger.Log, error) {
				return kafkaconn.TopicLogs(ctx, client, c.Topics...)
			}),
		},
		kafka:       client,
		balancer:    &balancer{},
		membership:  newMembership(),
		deadLetters: &deadletter.Topics{Client: client, Log: c.Log},
	}
}

// Reconnected records that a new connection to the standings was made: another server may be behind it.
func (c *Consumer) Reconnected() { c.reconnected.Add(1) }

func (c *Consumer) worker(topic string, number int, com *commits) *worker {
	p := c.partition(topic, number)
	l := health.NewLagTracker()
	s := health.NewStatus(p.log, c.Owner, c.Group, l)
	w := &worker{partition: p, shards: c.shards, stats: c.Stats, status: s, lag: l, pipeline: c.pipeline(p, s, l, com)}
	w.locator = c.locator(w.pipeline)
	return w
}

func (c *Consumer) replayWorker(topic string, number int) *replayWorker {
	w := c.worker(topic, number, newCommits(nil, c.Log))
	return &replayWorker{partition: w.partition, shards: w.shards, status: w.status, pipeline: w.pipeline}
}

func (c *Consumer) locator(p *pipeline) *locator {
	return &locator{
		books:     p.books,
		partition: p.partition, resolver: c.resolver(p.partition, p.status), shards: c.shards, states: c.states, identities: c.identities,
		commits: p.commits, status: p.status, lag: p.lag, carried: p.carried, onGap: c.OnGap,
	}
}

func (c *Consumer) resolver(p *partition, s *health.Status) *resolver {
	return &resolver{
		partition: p, room: c.room, starting: c.starting, stats: c.Stats, identities: c.identities, traces: c.Traces,
		fetcher:   func() *fetch.Fetcher { return c.fetchSettings().fetcher(p, c.room, nil) },
		throttled: func(d time.Duration) { c.Stats.Throttled.Add(int64(d)); s.Throttled(d) },
		terms:     c.terms(),
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

func (c *Consumer) pipeline(p *partition, s *health.Status, l *health.LagTracker, com *commits) *pipeline {
	return &pipeline{
		partition: p, room: c.room, carried: &carried{partition: p, stats: c.Stats},
		shards: c.shards, sealed: new(fold.Sealed), stats: c.Stats, status: s, lag: l, commits: com,
		outbox: &deadletter.Outbox{
			Partition: p.Partition, Client: p.kafka, Timeout: c.Timeout, Count: &c.Stats.DeadLetters, Tries: &c.Stats.KafkaTries,
			Remake: c.deadLetters.Remake,
		},
		rereads: c.rereads, reconnected: &c.reconnected, known: &lookBack{},
		borders: c.borders,
		books:   &rulebooks{partition: p, own: c.ownBook(), read: c.readRules, foldMemory: c.FoldMemory}, fetch: c.fetchSettings(),
		disorder:  &disorder{allowed: c.Disorder, log: p.log, stats: c.Stats},
		pieceTime: c.PieceTime, pause: c.Pause,
	}
}

func (c *Consumer) fetchSettings() fetchSettings { return fetchSettings{c.FetchBytes, c.FetchWait} }

func (c *Consumer) partition(topic string, number int) *partition {
	p := ledger.Partition{Topic: topic, Number: number}
	return &partition{
		Partition: p, field: p.String(), kafka: c.kafka, group: c.Group,
		log: c.Log.With(zap.String("topic", topic), zap.Int("partition", number)),
	}
}
