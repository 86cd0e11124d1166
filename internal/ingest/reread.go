package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// rereader reads a sweeper's batch again and writes dead letters for the events of refused members. It runs in
// the sweeper's goroutine.
type rereader struct {
	*partition
	room
	carried *carried
	outbox  *deadletter.Outbox
	rereads *rereads
	status  *health.Status
	source  func() *source // outside of the memory budget
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
		partition: r.partition, source: r.source(), records: recordbatch.Reader{MaxRecord: r.maxRecord, MaxCodec: r.maxCodec},
		decoder: event.NewDecoder(b.by.events), batch: b, deadLetters: r.outbox.Writer(r.status.Writing), written: &r.carried.writtenRefused,
	}
	defer second.records.Close()
	second.deadLetters.Once = true
	second.deadLetters.Written = second.written
	second.deadLetters.Patience = fetch.MaxThrottle
	second.deadLetters.Wanted = func() bool { return r.memory.Wanted() || r.rereads.wanted() }
	if err := second.read(ctx); err != nil {
		return err
	}
	r.status.Writing(nil)
	return nil
}

// takeTurn acquires the token, or ends the flow if others want the memory that the batch holds.
func (r *rereader) takeTurn(ctx context.Context) error {
	return r.rereads.await(ctx, r.status.Writing, func() error {
		if !r.memory.Wanted() {
			return nil
		}
		r.carried.lostTurn = true
		return fmt.Errorf("%s: %w: %w", r.field, errTurn, errLocateAgain)
	})
}

// rereading is a second reading of a batch, for the events of refused members.
type rereading struct {
	*partition
	source      *source
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
		if o.source.end.Confirmed() {
			return fmt.Errorf("%s: the log ends at offset %d, in the middle of what was read as [%d, %d): %w", o.field, from, o.batch.From(), to, errLocateAgain)
		}
		resp, err := o.source.fetch(ctx, from)
		if err != nil {
			return err
		}
		err = o.response(ctx, resp, from)
		from = o.records.Position()
		resp.Release()
		if !errors.Is(err, io.EOF) {
			return haltOfRecords(err, o.Partition, &o.records)
		}
	}
	if wanted := o.batch.PendingEvents(); o.found != wanted {
		// Without the dead letters of their events, no member may be taken out.
		return fmt.Errorf("%s: %d events of members who are refused were found again in [%d, %d), and %d were read at first",
			o.field, o.found, o.batch.From(), to, wanted)
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
	return o.deadLetters.Add(ctx, rec, o.decoder.ID(), refusalReasons[why],
		o.batch.refusalMessage(o.event.User, why))
}
