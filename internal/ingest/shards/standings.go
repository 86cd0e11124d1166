package shards

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// Standings receives the pieces of one shard. Its calls return within a bounded time.
type Standings interface {
	// Apply applies a piece, or returns why it can't. It also returns the duration of the call.
	Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error)
	// Check returns what Apply would return, with Fits in place of Applied, and writes nothing. The ledger must
	// be at the piece's expected position.
	Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error)
	// Position returns the ledger's text for a partition, or an empty string if there is none.
	Position(ctx context.Context, partition ledger.Partition) (string, error)
	// Settle settles the borders of windows that aren't settled yet, unless read is true, and returns all of
	// them. A border whose windows are over isn't settled.
	Settle(ctx context.Context, borders []ledger.Border, read bool) ([]ledger.Settled, error)
	// State returns the whole ledger and the other records of the shard.
	State(ctx context.Context) (ledger.State, error)
	// CheckSchema returns an error if the schema found by State isn't the one that this process writes.
	CheckSchema(found string) error
	// Extend adds the periods that this process counts and the schema found by State lacks, if that is the only
	// difference, and returns them. It sets st's schema to the resulting one.
	Extend(ctx context.Context, st *ledger.State, maxFuture time.Duration) ([]ledger.Added, error)
	// Begin writes the start positions of partitions, all or none.
	Begin(ctx context.Context, all []ledger.StartPosition) (ledger.StartResult, error)
	// Report writes the status lines of workers, and puts the standings' time before their first fields. It
	// returns the lines as stored, and the lines that they replaced.
	Report(ctx context.Context, lines []ledger.Line) (stored, before []string, err error)
	// Retract removes lines if they are still stored as given.
	Retract(ctx context.Context, stored []ledger.Line) error
	// ForgetRules removes the texts of rules that are no longer in use, except the own one.
	ForgetRules(ctx context.Context, own ledger.Fingerprint) (removed int, err error)
	// Classify returns the reaction to an error of the other methods.
	Classify(err error) ledger.Verdict
}

// ErrHeld is the wait for a hold to end.
var ErrHeld = &health.Waiting{Reason: health.WaitsRebuild, Err: errors.New("a rebuild is about to swap the boards, or a reshard to switch to the new ones"),
	Remedy: "none is needed: it ends, or its hold runs out"}

// taggedStandings adds the shard to the errors of its standings, to distinguish a wait for the shard from a
// wait for Kafka or for another shard.
type taggedStandings struct {
	Standings

	shard int
}

func (t taggedStandings) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := t.Standings.Apply(ctx, p)
	return a, took, health.StandingsError(t.shard, err)
}

func (t taggedStandings) Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	a, err := t.Standings.Check(ctx, p)
	return a, health.StandingsError(t.shard, err)
}

func (t taggedStandings) Position(ctx context.Context, partition ledger.Partition) (string, error) {
	text, err := t.Standings.Position(ctx, partition)
	return text, health.StandingsError(t.shard, err)
}

func (t taggedStandings) Settle(ctx context.Context, borders []ledger.Border, read bool) ([]ledger.Settled, error) {
	s, err := t.Standings.Settle(ctx, borders, read)
	return s, health.StandingsError(t.shard, err)
}

func (t taggedStandings) State(ctx context.Context) (ledger.State, error) {
	s, err := t.Standings.State(ctx)
	return s, health.StandingsError(t.shard, err)
}

func (t taggedStandings) Extend(ctx context.Context, st *ledger.State, maxFuture time.Duration) ([]ledger.Added, error) {
	added, err := t.Standings.Extend(ctx, st, maxFuture)
	return added, health.StandingsError(t.shard, err)
}

func (t taggedStandings) Begin(ctx context.Context, all []ledger.StartPosition) (ledger.StartResult, error) {
	b, err := t.Standings.Begin(ctx, all)
	return b, health.StandingsError(t.shard, err)
}
