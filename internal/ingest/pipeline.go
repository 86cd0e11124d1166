package ingest

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// pipeline reads a partition from a position to an endpoint and sweeps what was read. It connects a reader and
// a sweeper, with batches between them, to a flow. Only its worker's goroutine uses it, with two exceptions:
// the reader of a flow uses the decoders of the rulebooks, and the sweeper uses pieces and paces, which have
// one element per shard.
type pipeline struct {
	*source.Handle
	memory.Room
	common
	lasting

	status   *health.Status
	lag      *health.LagTracker
	commits  *commits.Pending
	outbox   *deadletter.Outbox
	fetch    source.Settings
	disorder *disorder
}

// common is what the pipelines of a process share.
type common struct {
	shards      shards.All
	stats       *counts.Stats
	rereads     *rereads
	reconnected *atomic.Int64 // counts new connections to the standings
	borders     *shards.Borders
	pause       *Pause
	pieceTime   time.Duration
}

// lasting is what one flow of a pipeline leaves to the next.
type lasting struct {
	carried   *carried
	known     *lookBack
	books     *rulebook.Books
	inherited rulebook.Inherited // of the next flow
	sealed    *fold.Sealed
	pieces    []fold.Pieces
	paces     []pace
}

// run reads and sweeps from a position until an error or ctx ends it. At the endpoint it returns
// errEndpointReached.
func (p *pipeline) run(ctx context.Context, at ledger.Positions, until replay.Endpoint) error {
	p.status.Started(at)
	p.lag.GoesOn(at.Lowest())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	// Each run has its own account and batches: the memory of an abandoned call returns to the account from
	// which it was taken.
	account := p.Budget.Account()
	batches := newHandoff(func() *batch {
		b := &batch{Batch: fold.New(&p.books.Own.Fold, account, p.Budget.Reserve()-p.MaxBatch)}
		if !until.Given() { // a rebuild's shadow contains all events of the log
			b.Leaves(p.sealed)
		}
		return b
	})
	p.carried.written.Begin(at.Next().From)
	if from := at.Next().From; p.carried.stood == nil || from > p.carried.tallied.Load() {
		p.carried.tallied.Store(from) // the first flow, or Redis rolled back, or a gap lost events
	}
	p.carried.writtenRefused.Refused = true
	reader := p.reader(at, until, account, batches)
	go func() {
		err := reader.run(ctx, at)
		cancel(err) // the sweeper stops after the piece in flight
		done <- err
	}()
	sweeper := p.sweeper(at, until, batches)
	swept := sweeper.run(ctx)
	p.carried.stood, p.carried.trail = sweeper.positions(), sweeper.trail
	cancel(swept)
	read := <-done
	if b := batches.open(); b != nil {
		batches.recycle(b)
	}
	account.EndTurn()
	// The cause is the error of the goroutine that ended first; it cancelled the other one with that error.
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(swept, read)
}

func (p *pipeline) reader(at ledger.Positions, until replay.Endpoint, account *memory.Account, batches *handoff) *reader {
	deadLetters := p.outbox.Writer(p.status.Reading)
	deadLetters.Memory, deadLetters.Written, deadLetters.Wanted = account, &p.carried.written, p.Budget.Wanted
	deadLetters.None = until.Given()
	r := &reader{
		parsing: parsing{
			records: recordbatch.Reader{MaxRecord: p.MaxRecord, MaxCodec: p.MaxCodec, Memory: account},
			times:   trail.Times{Disorder: p.disorder.ms(), Broken: p.disorder.broken, Denied: p.disorder.denied},
		},
		passage: passage{decoder: p.books.Own.Decoder},
		Handle:  p.Handle, books: p.books, borders: p.borders, inherited: p.inherited, remembers: p.known, status: p.status,
		batches: batches, deadLetters: deadLetters, carried: p.carried,
		until: until, stats: p.stats,
	}
	r.times.Begin(p.carried.trail, at.Next().From)
	fetcher := p.fetch.Fetcher(p.Handle, p.Room, account)
	r.turn = &source.Turn{
		Field: p.Field, Budget: p.Budget, Account: account, Fetcher: fetcher,
		Waits: p.status.Reading, Drain: batches.drain, Holds: r.holds,
	}
	r.source = p.source(fetcher, r.turn, p.status.Reading, &p.carried.written)
	r.lineage = p.carried.trail.Lineage
	r.source.Lineage = r.lineage
	return r
}

func (p *pipeline) source(f *fetch.Fetcher, t *source.Turn, waits func(error), written *deadletter.Written) *source.Source {
	return &source.Source{
		Handle: p.Handle, Fetcher: f, FetchWait: p.fetch.Wait, Turn: t, Waits: waits,
		Idle: retry.ForEver.Start(), Written: written, Status: p.status, Lag: p.lag, Stats: p.stats,
	}
}

// sourceBesideBudget returns a source whose memory is outside of the budget.
func (p *pipeline) sourceBesideBudget() *source.Source {
	f := p.fetch.Fetcher(p.Handle, p.Room, nil)
	s := p.source(f, &source.Turn{Field: p.Field, Budget: p.Budget, Fetcher: f}, p.status.Writing, &p.carried.writtenRefused)
	s.Hurried = true
	return s
}

func (p *pipeline) sweeper(at ledger.Positions, until replay.Endpoint, batches *handoff) *sweeper {
	s := &sweeper{
		Handle: p.Handle, batches: batches, commits: p.commits, status: p.status, lag: p.lag, stats: p.stats,
		reconnected: p.reconnected, exact: until.Given(), trail: p.carried.trail, tallied: &p.carried.tallied, calls: new(calls),
		pause:   p.pause,
		refuser: &refuser{Handle: p.Handle},
	}
	if p.pieces == nil {
		p.pieces, p.paces = make([]fold.Pieces, len(p.shards)), make([]pace, len(p.shards))
		for i := range p.paces {
			p.paces[i].target = p.pieceTime
		}
	}
	writing := &writing{errs: make([]error, len(p.shards)), note: p.status.Writing}
	for i, standings := range p.shards {
		counts := p.stats.Shard(i)
		s.lanes = append(s.lanes, &lane{
			Handle: p.Handle, shard: i, standings: standings, own: p.books.Own, notes: !until.Given(), pieces: &p.pieces[i], pace: &p.paces[i], stats: p.stats, counts: counts, at: at[i],
			applier: &applier{
				Handle: p.Handle, number: i, shard: shards.On(i, p.shards.Count()), standings: standings, stats: p.stats, counts: counts, calls: s.calls,
				writing: func(err error) { writing.of(i, err) },
			},
		})
	}
	for i, noted := range p.inherited.Noted {
		s.lanes[i].noted = noted
	}
	if until.Given() {
		s.refuser.refused = deadLettersOfOthers{p.Handle}
	} else {
		s.refuser.refused = &rereader{
			Handle: p.Handle, Room: p.Room, carried: p.carried, outbox: p.outbox, rereads: p.rereads,
			status: p.status, source: p.sourceBesideBudget,
		}
	}
	return s
}

// disorder checks how far a record's time lies before that of an earlier record, against the operator's limit.
// Only the reader's goroutine uses it.
type disorder struct {
	allowed *time.Duration // nil: no limit is configured
	log     *zap.Logger
	stats   *counts.Stats
	logged  retry.LogLimit
}

// ms returns the operator's limit in ms; without a limit, more than any two times can differ.
func (d *disorder) ms() int64 {
	if d.allowed == nil {
		return math.MaxInt64
	}
	return d.allowed.Milliseconds()
}

// disorderLogged is the minimum interval between two log lines about records that exceed the limit.
const disorderLogged = time.Minute

// broken counts and logs a record that exceeds the operator's limit.
func (d *disorder) broken(offset, by int64) {
	d.stats.Disordered.Add(1)
	if !d.logged.Due(disorderLogged) {
		return
	}
	d.log.Warn("a record's time lies further before that of an earlier one than disorder says: windows may be taken for complete that aren't",
		zap.Int64("offset", offset), zap.Duration("behind", time.Duration(min(by, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond),
		zap.Duration("disorder", *d.allowed))
}

// denied logs that a record contradicts the trail, which therefore belongs to another log.
func (d *disorder) denied(offset int64) {
	d.log.Warn("a record is later than what the group's offsets say of its log, which was truncated or made again: what they say is dropped, and windows count as incomplete up to now",
		zap.Int64("offset", offset))
}
