// Package ingest reads events from Kafka and hands them, folded, to the
// standings.
//
// The promise: every event that Kafka has committed changes its windows exactly
// once. The ledger beside the scores says how far a partition has come, and this
// package only ever does one thing with it: it reads what lies past the ledger's
// position, and sends pieces that expect that position. Whatever else happens
// (a rebalance, a pause, a lost answer, a Redis that went back in time) shows as
// a ledger that has moved, and the answer is always the same: drop what was
// folded and go on from what the ledger says.
//
//	           ┌────────────── worker, one a partition ──────────────────┐
//	           │            pipeline                                     │
//	generation │ locator ─▶ reader ─────▶ handoff ─────▶ sweeper         │
//	of a group │   ▲        fetch         one batch      a lane a shard, │ ─▶ commits
//	           │   │        decode                       each with an    │
//	           │   │        duplicates                   applier: pieces,│
//	           │   │        fold                         retried         │
//	           │   └─────── moved, failed, halted ◀──────┘               │
//	           └─────────────────────────────────────────────────────────┘
//
// One goroutine reads and one sweeps: while a batch is swept the next one grows. What
// ends either ends both, and that is a flow; carried is what it leaves to the next one. A
// replay is the same pipeline with an endpoint, and without a locator.
//
// The sweeper has a lane for each shard, and waits until all of them are through with a batch.
// A lane cuts its pieces, and its applier sends each until its outcome is known. The rules that
// records are read by are a rulebook: the worker's own, or that of a sweep which another owner
// began by other rules. Where repeats are looked for, a lookback has the ids of the records before
// the reader's position; it reads them before the reader folds anything.
//
// # States
//
// What a partition is in, and what moves it:
//
//	begins ─▶ locating ──────────▶ reading and sweeping ─────────▶ ended
//	            │  ▲     position     │  ▲         │        generation's end,
//	      error │  │     written      │  │ answer  │        a replay's endpoint
//	            ▼  │ after a wait     ▼  │         │
//	       waiting, halted           waiting       │
//	               ▲                               │
//	               └────────── a flow ends ────────┘
//
//	a flow ends by                           then
//	the ledger has moved                     everything folded is dropped, locating
//	an error that passes                     waiting for Kafka or Redis, locating
//	the dead-letter topic, or its quota      waiting for dead letters: one is tried, locating
//	its turn at reading a batch again        waiting for that, locating
//	what won't pass by itself                halted; a second later locating, but shown as halted
//	                                         until a batch is through or nothing is left to read
//	the generation                           ended, after the piece in flight
//	a replay's endpoint                      ended, with errEndpointReached
//
//	a flow that goes on waits for            noted by
//	Kafka: an answer, a quota                source.fetch
//	memory: a turn, holding nothing          turn.wait
//	duplicates: the ids before its position  reader.lookThrough
//	dead letters: for a moment               deadletter.Writer
//	Redis, room in Redis, a hold             applier.failing, applier.held
//	a pause, between two batches             sweeper.paused
//
// # Questions, and where their answers are
//
// Where is a batch cut? In two places. The reader's step (reader.go) closes the open batch when
// it is full: fold.Batch has no room for the next record, or memory has none. Otherwise the
// sweeper takes the open batch as it is whenever it has nothing to do (handoff.go); so under
// little load a batch is one response, or a few. Nothing depends on where it was cut.
//
// Who decides where a partition starts? start.DecideAll: a pure function of what the ledgers of
// all shards, the group's commits and the log have. The locator (locate.go) gathers those facts,
// and writes the position to Redis and then to Kafka before anything is read; at the first start
// of a topic the resolver (resolve.go) finds the offsets.
//
// What happens when Redis says no? The applier (apply.go) decides by the answer: an error that
// passes or a hold is waited out and the piece is sent again; a ledger that has moved ends the
// flow; any other answer halts the partition. If the script refuses members, because they would
// leave the range of points or open too many windows, the refuser (refuse.go) reads the batch
// again (reread.go), writes their events as dead letters, and has the pieces sent without them.
//
//	a worker's parts, and a flow's                consumer.go, pipeline.go
//	a batch on its way                            reading.go, reader.go, handoff.go, sweeper.go
//	shards: lanes, and levelling them             lane.go, shards.go
//	rules of another owner                        rulebook.go
//	duplicates                                    lookback.go, package duplicates
//	an event that can't count                     package deadletter
//	what is shown of a partition                  package health
//
// Below: fetch requests records of a broker and recordbatch reads its answer, event decodes a
// record, duplicates finds repeated ids, fold makes batches and cuts pieces, start decides where
// to begin, deadletter writes what can't count, memory is the budget, trail the times of deleted
// records, health what partitions are in, metrics shows what is counted.
package ingest

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/periods"
)

// Config is all that the consumer needs. Every field is set, but those that say what
// nil is.
type Config struct {
	Brokers   []string
	Transport kafka.RoundTripper
	Dialer    *kafka.Dialer // for the group, which doesn't use the transport
	// GroupBrokers are the addresses by which Dialer reaches any broker; nil: Brokers.
	GroupBrokers []string
	// Join becomes a member of the group; nil: by kafka-go.
	Join func(kafka.ConsumerGroupConfig) (Group, error)
	// Refusal asks the brokers why they let nobody in; nil where that isn't sure.
	Refusal func(context.Context) error
	Topics  []string
	Group   string
	Owner   string // names this process in status
	// TimeZoneData is the version of this process's time zone data, which its workers report.
	TimeZoneData string

	FetchBytes     int           // of a response, about; 64 KiB and more
	FetchWait      time.Duration // how long a broker may hold an empty answer
	SessionTimeout time.Duration
	Heartbeat      time.Duration // at most a third of SessionTimeout
	Timeout        time.Duration // of every other call to Kafka
	CommitInterval time.Duration // between two commits of a generation
	ShutdownTime   time.Duration // for the last commits and leaving the group

	Start start.Where
	OnGap start.OnGap
	// Traces reports what shows that events were counted before, such as windows in the archive; empty if nothing
	// does. It is called if neither Redis nor the group's offsets know of the topic, and Start would leave
	// events out. Nil: only the dead-letter topics are looked at.
	Traces func(context.Context) (string, error)
	// Disorder is how far a record's time may lie before that of an earlier one, by the
	// operator's word; nil where nobody says.
	Disorder  *time.Duration
	Rules     fold.Rules
	Retention map[periods.Period]time.Duration // how long after its end a window lives
	Events    event.Rules
	// RulesText is all of Rules, Events and Duplicates as one text, whose fingerprint is in the
	// position of a sweep. Empty: positions have none. ReadRules reads such a text, another's too.
	RulesText string
	ReadRules func(text string) (Counting, error)

	// Duplicates is how many offsets an event is looked for that has the same ids; 0: repeats
	// count.
	Duplicates int64

	FoldMemory int64         // bytes
	PieceTime  time.Duration // how long one call may keep Redis busy

	Standings []Standings // one a shard, in their order
	Pause     *Pause      // nil: there is none
	Log       *zap.Logger
	Stats     *Stats
}
