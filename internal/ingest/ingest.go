// Package ingest reads events from Kafka and hands them, folded, to the
// standings.
//
// The promise: every event that Kafka has committed changes its windows exactly
// once. The ledger beside the scores says where a partition stands, and this
// package only ever does one thing with it: it reads what lies past the ledger's
// position, and sends pieces that expect that position. Whatever else happens
// (a rebalance, a pause, a lost answer, a Redis that went back in time) shows as
// a ledger that has moved, and the answer is always the same: drop what was
// folded and go on from what the ledger says.
//
//	           ┌──────────── worker, one a partition ────────────┐
//	           │            pipeline                             │
//	generation │ locator ─▶ reader ─────▶ handoff ─────▶ sweeper │
//	of a group │   ▲        fetch         one batch      pieces, │ ─▶ commits
//	           │   │        decode, fold                 retried │
//	           │   └─────── moved, failed, halted ◀──────┘       │
//	           └─────────────────────────────────────────────────┘
//
// One goroutine reads and one sweeps: while a batch is swept the next one grows. What
// ends either ends both, and that is a flow; carried is what it leaves to the next one. A
// replay is the same pipeline with an endpoint, and without a locator.
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
//	a replay's endpoint                      ended, with errThrough
//
//	a flow that goes on waits for            noted by
//	Kafka: an answer, a quota                source.fetch
//	memory: a turn, holding nothing          turn.wait
//	dead letters: for a moment               deadletter.Writer
//	Redis, room in Redis, a hold             applier.failing, applier.held
//	a pause, between two batches             sweeper.paused
//
// # Where to begin
//
//	what is put together?                         consumer.go a worker, pipeline.go a flow
//	where is a batch cut?                         reader.go, step; how full: fold
//	who decides where a partition starts?         start, Decide; locate.go does it
//	what happens when Redis says no?              apply.go; refuse.go for members it refuses
//	what is written about a bad event?            deadletter
//	what is shown of a partition?                 health
//
// Below: fetch asks a broker and recordbatch reads its answer, event decodes a record, fold
// makes batches and cuts pieces, start decides where to begin, deadletter writes what can't
// count, memory is the budget, trail the times of deleted records, health what partitions are
// in, metrics shows what is counted.
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
	// Join becomes a member of the group; nil: by kafka-go.
	Join func(kafka.ConsumerGroupConfig) (Group, error)
	// Refusal asks the brokers why they let nobody in; nil where that isn't sure.
	Refusal func(context.Context) error
	Topics  []string
	Group   string
	Owner   string // names this process in status

	FetchBytes     int           // of a response, about; 64 KiB and more
	FetchWait      time.Duration // how long a broker may hold an empty answer
	SessionTimeout time.Duration
	Heartbeat      time.Duration
	Timeout        time.Duration // of every other call to Kafka
	CommitInterval time.Duration
	ShutdownTime   time.Duration // for the last commits and leaving the group

	Start start.Where
	OnGap start.OnGap
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
	// count. What that takes of all partitions is within DuplicatesMemory, in bytes.
	Duplicates, DuplicatesMemory int64

	FoldMemory int64 // bytes
	PieceTime  time.Duration

	Standings []Standings // one a shard, in their order
	Pause     *Pause      // nil: there is none
	Log       *zap.Logger
	Stats     *Stats
}
