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
//	           ┌──────────────── worker, one a partition ───────────────┐
//	           │ locate ─▶ reader ─────▶ handoff ─────▶ sweeper         │
//	generation │   ▲       fetch         one batch      piece by piece, │ ─▶ commits
//	of a group │   │       decode, fold                 retried         │
//	           │   └────────── moved, halted, failed ◀──┘               │
//	           └────────────────────────────────────────────────────────┘
//
// One goroutine reads and one sweeps: while a batch is swept the next one grows.
package ingest

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Standings is where pieces go. Its calls return within a bounded time.
type Standings interface {
	// Apply adds a piece, or answers why not. It also says how long the call took.
	Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error)
	// Check answers what Apply would, with Fits instead of Applied, and writes nothing.
	// The ledger has to be at the piece's expected position, whatever the piece.
	Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error)
	// Position is the ledger's text for a partition, empty where there is none.
	Position(ctx context.Context, topic string, partition int) (string, error)
	// State is the whole ledger and what stands beside it.
	State(ctx context.Context) (ledger.State, error)
	// CheckSchema says whether what State found is what this process writes.
	CheckSchema(found string) error
	// Begin writes where partitions start, all or none.
	Begin(ctx context.Context, all []ledger.Beginning) (ledger.Begun, error)
	// Report writes a partition's line for status, with the standings' time before its
	// first field, and returns the line that it replaces.
	Report(ctx context.Context, topic string, partition int, line string) (replaced string, err error)
	// Meaning says what an error of the others asks for.
	Meaning(err error) ledger.Verdict
}

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

	Start Start
	OnGap OnGap
	// Disorder is how far a record's time may lie before that of an earlier one, by the
	// operator's word; nil where nobody says.
	Disorder  *time.Duration
	Rules     fold.Rules
	Retention map[periods.Period]time.Duration // how long after its end a window lives
	Events    event.Rules

	FoldMemory int64 // bytes
	PieceTime  time.Duration

	Standings Standings
	Log       *zap.Logger
	Stats     *Stats
}

// Start says where a topic without a ledger and without committed offsets is
// read from.
type Start struct {
	From StartFrom
	Time time.Time // for FromTime
}

// StartFrom is a kind of start.
type StartFrom int

const (
	// FromWindow is the first offset that can hold an event of a live window.
	FromWindow StartFrom = iota
	// FromEarliest is the log's start.
	FromEarliest
	// FromLatest is the log's end.
	FromLatest
	// FromTime is the first record of a time or later.
	FromTime
)

// OnGap says what to do where events are gone from the log before they counted.
type OnGap int

const (
	// GapHalts the partition, and says what is missing.
	GapHalts OnGap = iota
	// GapContinues with what is left, and shows windows as incomplete.
	GapContinues
)
