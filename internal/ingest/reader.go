package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// reader fetches, decodes and folds a partition from a position, up to its endpoint if it has one. It runs in
// its own goroutine, and passes its batches to the sweeper's goroutine through handoff.
type reader struct {
	*source.Handle
	parsing
	passage

	source      *source.Source
	turn        *source.Turn
	batches     *handoff
	deadLetters *deadletter.Writer
	carried     *carried // it uses written and tallied
	status      *health.Status
	until       replay.Endpoint
	stats       *counts.Stats
	borders     *shards.Borders
	books       *rulebook.Books
	remembers   *lookBack
	inherited   rulebook.Inherited
}

// parsing is the state of reading records and decoding events.
type parsing struct {
	records recordbatch.Reader
	event   event.Event
	folded  fold.Event
	times   trail.Times
	lineage trail.Lineage
}

// passage is the state of one reading.
type passage struct {
	reading ledger.Reading
	began   ledger.Positions // the positions of the shards when the reading started
	by      *rulebook.Book
	decoder *event.Decoder // by the rules of the reading
	known   *lookBack      // nil: no duplicate detection
	judge   *fold.Batch    // judges times if no batch is open; set with known

	sweep              *batch // of a reread, which is swept only once its whole range was read; else nil
	halved             bool   // the reread has left members to another reading
	deadLettersWritten bool   // an earlier reading wrote the dead letters of this sweep
}

// errFull reports that a batch must be swept before its next record can be folded.
var errFull = errors.New("the batch is full")

// step fetches one response and folds its records into the open batch: those before the offset limit, or all if
// limit is negative. It returns the offset from which to continue.
func (r *reader) step(ctx context.Context, offset, limit int64) (int64, error) {
	resp, err := r.source.Fetch(ctx, offset)
	if errors.Is(err, source.ErrNoMemory) {
		return offset, r.turn.Wait(ctx)
	}
	if err != nil {
		return offset, err
	}
	defer resp.Release()
	more := resp.More()
	b := r.batches.open()
	if b == nil {
		if r.turn.Used { // its batch is being swept: let the next worker have its turn
			r.turn.End()
		}
		b = r.fresh(offset, r.began)
	}
	for {
		before := b.records
		end, err := r.foldOnce(ctx, b, resp, offset, limit)
		r.stats.Records.Add(b.records - before)
		b.trail = r.trailAt(end)
		b.MoveTo(end)
		if flushed := r.deadLetters.Flush(ctx); flushed != nil {
			r.batches.recycle(b)
			return offset, flushed
		}
		full, short := errors.Is(err, errFull), errors.Is(err, source.ErrNoMemory)
		switch {
		case full:
			if err := r.close(ctx, b); err != nil {
				return offset, err
			}
			offset, b = end, r.fresh(end, r.began)
			continue
		case b.To() > b.From():
			r.turn.Used = r.turn.Taken
			r.batches.put(b)
		case short && r.turn.Taken && !r.turn.Used: // a whole reserve did not suffice for one record
			r.batches.recycle(b)
			return end, r.tooLarge(end)
		default:
			r.batches.recycle(b)
		}
		if short {
			resp.Release()
			return end, r.turn.Wait(ctx)
		}
		if !more { // the next request may wait for long: don't hold a reserve meanwhile
			r.turn.End()
		}
		return end, err
	}
}

// trailAt returns the trail of the log's records before an offset.
func (r *reader) trailAt(offset int64) trail.Trail {
	t := r.times.At(offset)
	if epoch, ok := r.records.Epoch(); ok {
		r.lineage = trail.Lineage{Offset: offset, Epoch: epoch}
	}
	t.Lineage = r.lineage
	return t
}

// tooLarge returns the halt for a batch at an offset that can't be read with all the memory that one partition
// may use.
func (r *reader) tooLarge(offset int64) *health.Halt {
	return &health.Halt{Reason: health.HaltTooLarge, What: fmt.Sprintf("the record batch of %s at offset %d takes more than %d bytes to read", r.Field, offset, r.turn.Budget.Reserve()),
		Remedy: "raise fold_memory, of which one partition can have a third"}
}

// fresh takes a free batch, which starts at an offset of the reading, with the shards at their current
// positions. One is always free: of the two batches, the sweeper has at most one.
func (r *reader) fresh(from int64, at ledger.Positions) *batch {
	b := <-r.batches.free
	b.Tally, b.records, b.newest, b.oldest, b.again = counts.Tally{}, 0, 0, 0, false
	b.by, b.exact = r.by, r.by != r.books.Own
	b.By(&r.by.Fold)
	b.Reset(from, r.reading, r.began, at)
	return b
}

// close hands over a batch, and ends the reader's turn, if it has one.
func (r *reader) close(ctx context.Context, b *batch) error {
	r.turn.End()
	if err := r.batches.close(ctx, b); err != nil {
		r.batches.recycle(b)
		return err
	}
	return nil
}

// lookAfter is the number of records after which the reader checks its context. So a worker that has lost its
// partition stops soon, however large a response is and however hostile its ids are.
const lookAfter = 1000

// foldOnce folds records as fold does, but stops at the end of the events that Stats have already counted. Up
// to there, all of the batch's events count as repeated.
func (r *reader) foldOnce(ctx context.Context, b *batch, resp *fetch.Response, from, end int64) (int64, error) {
	tallied := r.carried.tallied.Load()
	if from >= tallied {
		return r.fold(ctx, b, resp, from, end)
	}
	if end < 0 || end > tallied {
		end = tallied
	}
	to, err := r.fold(ctx, b, resp, from, end)
	b.Tally = b.Repeat()
	return to, err
}

// fold adds a response's records from an offset on, up to the offset end if that isn't negative. It returns the
// offset from which to continue.
func (r *reader) fold(ctx context.Context, b *batch, resp *fetch.Response, from, end int64) (to int64, err error) {
	defer func() {
		r.times.Read(to)
		if r.known != nil {
			r.known.set.Pass(to)
		}
	}()
	resp.Read(&r.records, from)
	defer r.records.Close() // its window and codec are charged to the account
	for n := 0; ; n++ {
		if n%lookAfter == 0 && ctx.Err() != nil {
			return r.records.Position(), context.Cause(ctx)
		}
		rec, err := r.records.Next()
		if err != nil {
			return r.ended(end, err)
		}
		if end >= 0 && rec.Offset >= end {
			return end, nil
		}
		if w := rec.Whole; w != nil && end >= 0 && w.Last >= end { // the rest belongs to another reading
			w.Last, w.Count = end-1, min(w.Count, end-rec.Offset)
		}
		if err := r.one(ctx, b, rec); err != nil {
			return rec.Offset, err
		}
		b.records++
	}
}

// ended returns the result for the end of the records or for an error. At or after the offset end, if that
// isn't negative, neither matters: errors there are ignored, and a batch without records may reach past it.
func (r *reader) ended(end int64, err error) (int64, error) {
	at := r.records.Position()
	switch {
	case end >= 0 && at >= end:
		return end, nil
	case err == io.EOF: //nolint:errorlint // it comes bare
		return at, nil
	case errors.Is(err, recordbatch.ErrNoMemory):
		return at, source.ErrNoMemory
	}
	return at, r.failed(err)
}

// failed returns an error of the records as a halt if it is permanent; else unchanged.
func (r *reader) failed(err error) error { return source.HaltOfRecords(err, r.Partition, &r.records) }

// one folds one record. It returns errFull or errNoMemory if the batch has no room for the record.
func (r *reader) one(ctx context.Context, b *batch, rec *recordbatch.Record) error {
	r.times.Note(rec.Offset, rec.Time)
	if r.known != nil {
		r.known.set.Time(rec.Offset, rec.Time)
	}
	b.newest = max(b.newest, rec.Time)
	if rec.Time > 0 && (rec.Time < b.oldest || b.oldest == 0) {
		b.oldest = rec.Time
	}
	if rec.Value == nil && rec.Oversize == 0 {
		b.Skipped++
		return nil
	}
	if rec.Whole != nil {
		return r.wholeBatch(ctx, b, rec)
	}
	if rec.Oversize > 0 {
		return r.bad(ctx, b, rec, nil, event.Malformed, "the record is over max_event_bytes by far")
	}
	if bad := decode(r.decoder, rec, &r.event); bad != nil {
		return r.bad(ctx, b, rec, r.decoder.ID(), bad.Reason, bad.Message)
	}
	e := &r.folded
	e.Offset, e.User, e.Hash, e.Boards = rec.Offset, r.event.User, fold.Hash(r.event.User), r.event.Boards
	e.Points, e.Time, e.RecordTime = r.event.Points, r.event.Time, rec.Time
	if e.Name != nil || r.event.Name != nil {
		e.Name = r.event.Name
	}
	if e.Tuples != nil || r.event.Tuples != nil {
		e.Tuples = r.event.Tuples
	}
	var id duplicates.ID
	known := false
	if r.known != nil {
		if id, known = r.id(); known && r.known.set.Has(rec.Offset, id) {
			return r.repeats(ctx, b, rec, id)
		}
	}
	result, err := b.Add(e)
	for u, ok := errors.AsType[*fold.UnsettledError](err); ok; u, ok = errors.AsType[*fold.UnsettledError](err) {
		if err := r.borders.Settle(ctx, u.Borders); err != nil {
			return err
		}
		result, err = b.Add(e)
	}
	if err != nil {
		return r.bad(ctx, b, rec, r.decoder.ID(), event.BadTime, err.Error())
	}
	switch result {
	case fold.Full:
		return errFull
	case fold.NoMemory:
		return source.ErrNoMemory
	case fold.Late:
		b.Late++
	case fold.Early:
		b.Early++
	case fold.Repeated:
		b.Repeated++
	case fold.Elsewhere:
		b.records-- // it belongs to another reading
	}
	if known {
		r.known.set.Add(rec.Offset, id)
	}
	return nil
}

// decode decodes a record according to its headers.
func decode(d *event.Decoder, rec *recordbatch.Record, into *event.Event) *event.Bad {
	if rec.HeaderCount == 0 {
		return d.Decode(rec.Value, rec.Time, into)
	}
	var h event.Headers
	rec.EachHeader(h.Note)
	return d.DecodeWith(&h, rec.Value, rec.Time, into)
}

// bad handles a record that can't count. id is the event's id, or nil if it is unknown.
func (r *reader) bad(ctx context.Context, b *batch, rec *recordbatch.Record, id []byte, reason event.Reason, message string) error {
	if !r.deadLettersWritten && !r.carried.written.Has(rec.Offset) {
		r.deadLetters.Final = r.turn.Taken && (b.Resumed() || b.records == 0)
		err := r.deadLetters.Add(ctx, rec, id, reason, message)
		if errors.Is(err, deadletter.ErrNoMemory) {
			return source.ErrNoMemory
		}
		if err != nil {
			return err
		}
	}
	b.Dead[counts.ReasonIndex(reason)]++
	return nil
}

// wholeBatch handles all records of a batch that needs too much memory as records that can't count. Together
// they have one dead letter.
func (r *reader) wholeBatch(ctx context.Context, b *batch, rec *recordbatch.Record) error {
	w := rec.Whole
	if err := r.bad(ctx, b, rec, nil, event.TooLarge, rec.TooLarge("fold_memory")); err != nil {
		return err
	}
	b.Dead[counts.ReasonIndex(event.TooLarge)] += w.Count - 1
	b.records += w.Count - 1
	return nil
}

// holds reports whether the reader holds state that it would have to read again. That state is the non-empty
// batch of a reread, dead letters that it gathered, or how far it has halved the members of a reread. Without
// such state a reread holds nothing while it waits, like any other reading.
func (r *reader) holds() bool {
	return r.sweep != nil && (r.sweep.Held() > 0 || r.deadLetters.Holds() || r.halved)
}
