package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// rereader reads a sweeper's batch again and writes dead letters for the events of refused members. It runs in
// the sweeper's goroutine.
type rereader struct {
	*source.Handle
	memory.Room
	carried *carried
	outbox  *deadletter.Outbox
	rereads *rereads
	status  *health.Status
	source  func() *source.Source // outside of the memory budget
}

func (*rereader) accept(ledger.Refusal) error { return nil }

// write reads the batch again and writes dead letters for the events of the members that were marked since it
// was last read.
//
// It reads outside of the memory budget, so one partition at a time holds a token for it. Meanwhile the batch
// stays in memory, so every wait is bounded; after that, the flow ends and releases everything:
//
//	wait for                       limit
//	the token                      none; checks every outagePatience whether others want memory
//	a leader that doesn't answer   outagePatience
//	a quota that blocks answers    throttleStarves
//	the dead-letter topic          none: the flow ends at the first error
//	the dead-letter topic's quota  fetch.MaxThrottle for a set of dead letters, and in all
//	                               if others want the memory or the token
//
// The rest is work: under a quota that lets a response through now and then, this reading takes as long as the
// first one. Each flow writes at least one set of dead letters.
func (r *rereader) write(ctx context.Context, b *batch) error {
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.rereads.end()
	// The worker's own reader runs meanwhile, so this reading must not touch its state.
	r.carried.writtenRefused.Begin(b.From())
	second := &rereading{
		Handle: r.Handle, source: r.source(), records: recordbatch.Reader{MaxRecord: r.MaxRecord, MaxCodec: r.MaxCodec},
		decoder: event.NewDecoder(b.by.Events), batch: b, deadLetters: r.outbox.Writer(r.status.Writing), written: &r.carried.writtenRefused,
	}
	defer second.records.Close()
	second.deadLetters.Once = true
	second.deadLetters.Written = second.written
	second.deadLetters.Patience = fetch.MaxThrottle
	second.deadLetters.Wanted = func() bool { return r.Budget.Wanted() || r.rereads.wanted() }
	if err := second.read(ctx); err != nil {
		return err
	}
	r.status.Writing(nil)
	return nil
}

// takeTurn acquires the token, or ends the flow if others want the memory that the batch holds.
func (r *rereader) takeTurn(ctx context.Context) error {
	return r.rereads.await(ctx, r.status.Writing, func() error {
		if !r.Budget.Wanted() {
			return nil
		}
		r.carried.lostTurn = true
		return fmt.Errorf("%s: %w: %w", r.Field, errTurn, locate.ErrAgain)
	})
}

// rereading is a second reading of a batch, for the events of refused members.
type rereading struct {
	*source.Handle
	source      *source.Source
	records     recordbatch.Reader
	decoder     *event.Decoder // the worker's own is in use by its reader
	deadLetters *deadletter.Writer
	written     *deadletter.Written
	batch       *batch
	event       event.Event
	found       int64
}

// read ends as soon as it has found all events of the marked members.
func (o *rereading) read(ctx context.Context) error {
	from, to := o.batch.From(), o.batch.To()
	for from < to && o.found < o.batch.PendingEvents() {
		if o.source.End.Confirmed() {
			return fmt.Errorf("%s: the log ends at offset %d, in the middle of what was read as [%d, %d): %w", o.Field, from, o.batch.From(), to, locate.ErrAgain)
		}
		resp, err := o.source.Fetch(ctx, from)
		if err != nil {
			return err
		}
		err = o.response(ctx, resp, from)
		from = o.records.Position()
		resp.Release()
		if !errors.Is(err, io.EOF) {
			return source.HaltOfRecords(err, o.Partition, &o.records)
		}
	}
	if wanted := o.batch.PendingEvents(); o.found != wanted {
		// Without the dead letters of their events, no member may be taken out.
		return fmt.Errorf("%s: %d events of members who are refused were found again in [%d, %d), and %d were read at first",
			o.Field, o.found, o.batch.From(), to, wanted)
	}
	return o.deadLetters.Flush(ctx)
}

// response reads a response up to the batch's end; there it returns io.EOF.
func (o *rereading) response(ctx context.Context, resp *fetch.Response, from int64) error {
	resp.Read(&o.records, from)
	for n := 0; ; n++ {
		if n%lookAfter == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rec, err := o.records.Next()
		if err != nil {
			return err
		}
		if rec.Offset >= o.batch.To() {
			return io.EOF
		}
		if err := o.one(ctx, rec); err != nil {
			return err
		}
	}
}

func (o *rereading) one(ctx context.Context, rec *recordbatch.Record) error {
	if rec.Value == nil || decode(o.decoder, rec, &o.event) != nil {
		return nil
	}
	why := o.batch.Pending(o.event.User, rec.Offset)
	if why == 0 {
		return nil
	}
	if left, err := o.batch.Left(o.event.Boards, fold.Hash(o.event.User), rec.Offset, o.event.Time, rec.Time); err != nil || left {
		return nil //nolint:nilerr // a time that no calendar has was dead-lettered as such
	}
	o.found++
	if o.written.Has(rec.Offset) {
		return nil
	}
	return o.deadLetters.Add(ctx, rec, o.decoder.ID(), counts.RefusalReasons[why],
		o.batch.refusalMessage(o.event.User, why))
}

// The rest of this file has the token for reading a batch again because of refused members. If its holder waits for Kafka
// while others want memory, these events follow each other:
//
//	sweeper, with a batch       worker, with nothing        memory
//	waits for the token                                     wanted
//	ends the flow               releases everything         goes to the waiting partitions
//	                            waits for the token,
//	                            returns it
//	                            flow starts at the ledger

var errTurn = errors.New("another partition reads a batch again, for members who are refused")

// rereads holds the token with which one partition of a process at a time reads a batch again.
type rereads struct {
	token   chan struct{}
	waiting atomic.Int32 // number of partitions that wait for the token
}

func newRereads() *rereads { return &rereads{token: make(chan struct{}, 1)} }

// wanted reports whether another partition waits for the token.
func (t *rereads) wanted() bool { return t.waiting.Load() > 0 }

// end releases the token.
func (t *rereads) end() { <-t.token }

// await waits for the token. It calls look at intervals, and returns its error.
func (t *rereads) await(ctx context.Context, waits func(error), look func() error) error {
	select {
	case t.token <- struct{}{}:
		return nil
	default:
	}
	waits(errTurn) // the holder may have to wait for Kafka
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	now := time.NewTicker(source.OutagePatience) // a waiter that wakes up to look moves to the end of the queue
	defer now.Stop()
	for {
		select {
		case t.token <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-now.C:
			if err := look(); err != nil {
				return err
			}
		}
	}
}
