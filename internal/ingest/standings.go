package ingest

import (
	"context"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// Standings is where the pieces of one shard go. Its calls return within a bounded time.
type Standings interface {
	// Apply adds a piece, or answers why not. It also says how long the call took.
	Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error)
	// Check answers what Apply would, with Fits instead of Applied, and writes nothing.
	// The ledger has to be at the piece's expected position, whatever the piece.
	Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error)
	// Position is the ledger's text for a partition, empty if there is none.
	Position(ctx context.Context, partition ledger.Partition) (string, error)
	// Settle settles the borders of windows that aren't settled yet, unless it is only to read, and
	// returns where each is. One that is over isn't settled.
	Settle(ctx context.Context, borders []ledger.Border, read bool) ([]ledger.Settled, error)
	// State is the whole ledger and what stands beside it.
	State(ctx context.Context) (ledger.State, error)
	// CheckSchema says whether what State found is what this process writes.
	CheckSchema(found string) error
	// Extend adds the periods that this process counts and what State found lacks, if that is the only
	// difference, and returns them. The state's schema is the one that is there afterwards.
	Extend(ctx context.Context, st *ledger.State, maxFuture time.Duration) ([]ledger.Added, error)
	// Begin writes where partitions start, all or none.
	Begin(ctx context.Context, all []ledger.StartPosition) (ledger.StartResult, error)
	// Report writes the lines of workers, with the standings' time before their first fields. It returns
	// what is stored then, and what was stored before.
	Report(ctx context.Context, lines []ledger.Line) (stored, before []string, err error)
	// Retract removes lines that are still stored as they are given.
	Retract(ctx context.Context, stored []ledger.Line) error
	// ForgetRules removes texts of rules that nothing needs any more, but for one's own.
	ForgetRules(ctx context.Context, own ledger.Fingerprint) (removed int, err error)
	// Classify says what an error of the others asks for.
	Classify(err error) ledger.Verdict
}

// taggedStandings are standings whose errors say that they are a shard's of the standings: so
// that a wait for it is distinguished from one for Kafka, and from one for another shard.
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
