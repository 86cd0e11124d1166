// Package ingest reads events from Kafka, folds them and applies them to the standings.
//
// Its promise: every event that is committed in Kafka changes its windows exactly once. The ledger, stored with
// the scores, records how far each partition has been applied. This package reads the records after the
// ledger's position and sends pieces that expect that position. A rebalance, a pause, a lost answer or a
// rollback of Redis all show up as a ledger that has moved, and the worker always reacts in the same way: it
// drops what it has folded and continues from the ledger's position.
//
//	           ┌───────────── one worker per partition ──────────────────┐
//	           │            pipeline                                     │
//	generation │ locator ─▶ reader ─────▶ handoff ─────▶ sweeper         │
//	of a group │   ▲        fetch         one batch      lane per shard: │ ─▶ commits
//	           │   │        decode                       an applier      │
//	           │   │        duplicates                   sends pieces,   │
//	           │   │        fold                         with retries    │
//	           │   └─────── moved, failed, halted ◀──────┘               │
//	           └─────────────────────────────────────────────────────────┘
//
// One goroutine reads and another sweeps: while one batch is swept, the next one grows. If one of the two ends,
// the other ends too. One such run of both is a flow; carried holds the state that a flow leaves to the next
// flow. A replay uses the same pipeline, with an endpoint and without a locator.
//
// The sweeper has one lane per shard, and waits until all lanes have applied a batch. A lane cuts its pieces,
// and its applier sends each piece until its outcome is known. A rulebook holds the rules by which records are
// read: the worker's own rules, or those of a sweep that another owner started under other rules. If duplicates
// are detected, a lookback holds the ids of the records before the reader's position; it reads them before the
// reader folds anything.
//
// # States
//
// The states of a partition and the transitions between them:
//
//	begins ─▶ locating ──────────▶ reading and sweeping ─────────▶ ended
//	            │  ▲     position     │  ▲         │        generation's end,
//	      error │  │     written      │  │ answer  │        a replay's endpoint
//	            ▼  │ after a wait     ▼  │         │
//	       waiting, halted           waiting       │
//	               ▲                               │
//	               └────────── a flow ends ────────┘
//
//	a flow ends because of                   then the worker
//	a ledger that has moved                  drops everything folded, locates
//	a transient error                        waits for Kafka or Redis, locates
//	the dead-letter topic, or its quota      waits until one dead letter is written, locates
//	the wait to read a batch again           waits for its turn, locates
//	a permanent error                        halts; locates a second later, but is shown as halted
//	                                         until it has swept a batch or has nothing left to read
//	the generation's end                     ends, after the piece in flight
//	a replay's endpoint                      ends, with replay.ErrReached
//
//	a running flow waits for                 reported by
//	Kafka: an answer, a quota                Source.Fetch
//	memory: its turn, holding nothing        Turn.Wait
//	duplicates: the ids before its position  reader.lookThrough
//	dead letters: for a moment               deadletter.Writer
//	Redis, room in Redis, a hold             applier.failing, applier.held
//	a pause, between two batches             sweeper.paused
//
// # Questions and answers
//
// Where is a batch cut? In two places. The reader's step (reader.go) closes the open batch when it is full:
// fold.Batch has no room for the next record, or no memory is left. Otherwise the sweeper takes the open batch
// whenever it is idle (handoff.go), so under low load a batch holds one response, or a few. No result depends
// on where a batch was cut.
//
// Who decides where a partition starts? start.DecideAll, a pure function of the ledgers of all shards, the
// group's commits and the log. The locator (package locate) gathers those facts, and writes the position to
// Redis and then to Kafka before anything is read. At the first start of a topic, its resolver finds the
// offsets.
//
// What happens if Redis refuses a piece? The applier (apply.go) decides by the answer: after a transient error
// or a hold it waits and sends the piece again; if the ledger has moved, or a window is final or has other
// bounds, the flow ends; any other answer halts the partition. If the script refuses members because they would
// leave the range of points or open too many windows, the refuser (refuse.go) reads the batch again
// (reread.go), writes their events as dead letters, and sends the pieces without them.
//
// # Where to look
//
//	settings, and the parts of a consumer          ingest.go, consumer.go
//	the group: joining, generations, watching it   group.go, watch.go; packages group, topics, report
//	the life of a worker, what its flows leave     worker.go, carried.go, replayer.go
//	where it starts                                packages locate, start, trail
//	reading: a reading, a step, duplicates         pipeline.go, reading.go, reader.go, lookback.go
//	records: requests, waits, turns at memory      packages source, memory
//	events: decoding, ids, dead letters            packages event, duplicates, deadletter
//	batches: folding, cutting pieces               package fold; handoff.go passes them on
//	sweeping: shards, lanes, pieces                sweeper.go, lane.go, apply.go; package shards
//	what Redis refuses                             refuse.go, reread.go, sealed.go
//	commits                                        package commits
//	rules of another owner                         package rulebook
//	what is shown                                  snapshot.go; packages counts, health, metrics
//	a replay, for a rebuild                        package replay, replayer.go
//
// A package below knows nothing of this one, except metrics, which exports its counters.
package ingest

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/periods"
)

// Config holds all settings of a consumer. Every field is required unless its comment defines nil or zero.
type Config struct {
	Kafka
	Timing
	Starting
	Counting

	Owner string // the name of this process in status lines
	// TimeZoneData is the version of this process's time zone data. Its workers report it.
	TimeZoneData string
	FoldMemory   int64              // bytes
	Standings    []shards.Standings // one per shard, in the order of the shards
	Pause        *Pause             // nil: the consumer is never paused
	Log          *zap.Logger
	Stats        *counts.Stats
}

// Kafka is how a consumer reaches Kafka, and what it reads.
type Kafka struct {
	Brokers   []string
	Transport kafka.RoundTripper
	Dialer    *kafka.Dialer // for the group, which doesn't use Transport
	// GroupBrokers are the addresses through which Dialer reaches any broker; nil means Brokers.
	GroupBrokers []string
	// Join joins the group; nil means through kafka-go.
	Join func(kafka.ConsumerGroupConfig) (group.Group, error)
	// Refusal asks the brokers why they refuse this user; it returns nil if the refusal isn't certain.
	Refusal    func(context.Context) error
	Topics     []string
	Group      string
	FetchBytes int // approximate size of a response, in bytes; at least 64 KiB
}

// Timing has the deadlines and intervals of a consumer.
type Timing struct {
	FetchWait      time.Duration // how long a broker may delay an empty answer
	SessionTimeout time.Duration
	Heartbeat      time.Duration // at most a third of SessionTimeout
	Timeout        time.Duration // deadline of every other call to Kafka
	CommitInterval time.Duration // between two commits of a generation
	ShutdownTime   time.Duration // for the last commits and leaving the group
	PieceTime      time.Duration // how long one call may occupy Redis
}

// Starting has the settings for where a partition starts.
type Starting struct {
	Start start.Where
	OnGap start.OnGap
	// Traces returns evidence that events were counted before, such as windows in the archive, or an empty
	// string. It is called if neither Redis nor the group's offsets know the topic and Start would leave events
	// out. If it is nil, only the dead-letter topics are checked.
	Traces func(context.Context) (string, error)
	// Disorder is the operator's limit on how far a record's time may lie before that of an earlier record; nil
	// means no limit is configured.
	Disorder *time.Duration
}

// Counting has the rules by which records count.
type Counting struct {
	Rules     fold.Rules
	Retention map[periods.Period]time.Duration // how long a window lives after its end
	Events    event.Rules
	// RulesText is Rules, Events and Duplicates as one canonical text. The position of a sweep contains its
	// fingerprint; with an empty text positions have none. ReadRules parses such a text, also one that another
	// process wrote.
	RulesText string
	ReadRules func(text string) (rulebook.Counting, error)
	// Duplicates is the number of offsets before an event in which an event with the same ids makes it a
	// duplicate; 0 turns duplicate detection off.
	Duplicates int64
}
