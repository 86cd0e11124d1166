package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
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
	*partition
	room
	carried     *carried
	shards      shards
	sealed      *fold.Sealed
	stats       *Stats
	status      *health.Status
	lag         *health.LagTracker
	commits     *commits
	outbox      *deadletter.Outbox
	rereads     *rereads
	reconnected *atomic.Int64 // counts new connections to the standings
	known       *lookBack

	borders   *borders
	books     *rulebooks
	inherited inherited // of the next flow
	fetch     fetchSettings
	disorder  *disorder
	pieceTime time.Duration
	pause     *Pause
	pieces    []fold.Pieces
	paces     []pace
}

// run reads and sweeps from a position until an error or ctx ends it. At the endpoint it returns
// errEndpointReached.
func (p *pipeline) run(ctx context.Context, at ledger.Positions, until endpoint) error {
	p.status.Started(at)
	p.lag.GoesOn(at.Lowest())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	// Each run has its own account and batches: the memory of an abandoned call returns to the account from
	// which it was taken.
	account := p.memory.Account()
	batches := newHandoff(func() *batch {
		b := &batch{Batch: fold.New(&p.books.own.fold, account, p.memory.Reserve()-p.maxBatch)}
		if !until.given() { // a rebuild's shadow contains all events of the log
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

func (p *pipeline) reader(at ledger.Positions, until endpoint, account *memory.Account, batches *handoff) *reader {
	deadLetters := p.outbox.Writer(p.status.Reading)
	deadLetters.Memory, deadLetters.Written, deadLetters.Wanted = account, &p.carried.written, p.memory.Wanted
	deadLetters.None = until.given()
	r := &reader{
		partition: p.partition, books: p.books, borders: p.borders, inherited: p.inherited, decoder: p.books.own.decoder, remembers: p.known, status: p.status, batches: batches, deadLetters: deadLetters, written: &p.carried.written, tallied: &p.carried.tallied,
		until: until, stats: p.stats,
		records: recordbatch.Reader{MaxRecord: p.maxRecord, MaxCodec: p.maxCodec, Memory: account},
		times:   trail.Times{Disorder: p.disorder.ms(), Broken: p.disorder.broken, Denied: p.disorder.denied},
	}
	r.times.Begin(p.carried.trail, at.Next().From)
	fetcher := p.fetch.fetcher(p.partition, p.room, account)
	r.turn = &turn{
		field: p.field, budget: p.memory, account: account, fetcher: fetcher,
		waits: p.status.Reading, drain: batches.drain, holds: r.holds,
	}
	r.source = p.source(fetcher, r.turn, p.status.Reading, r.written)
	r.lineage = p.carried.trail.Lineage
	r.source.lineage = r.lineage
	return r
}

func (p *pipeline) source(f *fetch.Fetcher, t *turn, waits func(error), written *deadletter.Written) *source {
	return &source{
		partition: p.partition, fetcher: f, fetchWait: p.fetch.wait, turn: t, waits: waits,
		idle: retry.ForEver.Start(), written: written, status: p.status, lag: p.lag, stats: p.stats,
	}
}

// sourceBesideBudget returns a source whose memory is outside of the budget.
func (p *pipeline) sourceBesideBudget() *source {
	f := p.fetch.fetcher(p.partition, p.room, nil)
	s := p.source(f, &turn{field: p.field, budget: p.memory, fetcher: f}, p.status.Writing, &p.carried.writtenRefused)
	s.hurried = true
	return s
}

func (p *pipeline) sweeper(at ledger.Positions, until endpoint, batches *handoff) *sweeper {
	s := &sweeper{
		partition: p.partition, batches: batches, commits: p.commits, status: p.status, lag: p.lag, stats: p.stats,
		reconnected: p.reconnected, exact: until.given(), trail: p.carried.trail, tallied: &p.carried.tallied, calls: new(calls),
		pause:   p.pause,
		refuser: &refuser{partition: p.partition},
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
			partition: p.partition, shard: i, standings: standings, own: p.books.own, notes: !until.given(), pieces: &p.pieces[i], pace: &p.paces[i], stats: p.stats, counts: counts, at: at[i],
			applier: &applier{
				partition: p.partition, number: i, shard: onShard(i, p.shards.count()), standings: standings, stats: p.stats, counts: counts, calls: s.calls,
				writing: func(err error) { writing.of(i, err) },
			},
		})
	}
	for i, noted := range p.inherited.noted {
		s.lanes[i].noted = noted
	}
	if until.given() {
		s.refuser.refused = deadLettersOfOthers{p.partition}
	} else {
		s.refuser.refused = &rereader{
			partition: p.partition, room: p.room, carried: p.carried, outbox: p.outbox, rereads: p.rereads,
			status: p.status, source: p.sourceBesideBudget,
		}
	}
	return s
}

// fetchSettings are the limits of a fetch request.
type fetchSettings struct {
	bytes int // approximate size of a response
	wait  time.Duration
}

// fetcher returns a fetcher for a partition's records. It charges their memory to m; if m is nil, to no
// account.
func (s fetchSettings) fetcher(p *partition, r room, m *memory.Account) *fetch.Fetcher {
	f := &fetch.Fetcher{
		Transport: p.kafka.Transport, Addr: p.kafka.Addr, ClientID: kafkaconn.ClientID, Topic: p.Topic, Partition: p.Number,
		MaxWait: s.wait, MaxBytes: int32(min(int64(s.bytes), r.maxBatch/2)), MaxBatch: r.maxBatch,
	}
	if m != nil {
		f.Memory = m
	}
	return f
}
