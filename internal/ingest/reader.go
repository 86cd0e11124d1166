package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// reader fetches, decodes and folds one partition from a position on.
type reader struct {
	*worker
	fetcher *fetch.Fetcher
	records recordbatch.Reader
	event   event.Event
	folded  fold.Event
	blocked func(error) // told what reading waits for, nil once it goes on
	done    *lettered   // by its reading: the worker's, or the sweeper's
	idle    *wait       // between answers that came empty at once
	times   times
	end     end    // how long the leader has shown the log's end
	again   bool   // the dead letters of what is read were written by this flow
	token   bool   // others wait for it to end: it waits neither an outage nor a quota out
	sweep   *batch // of a reread, which isn't swept before its whole range was read; else nil
	// On a reserve of memory, and whether a batch was given away on it.
	hasTurn, turnUsed bool
}

// errFull says that a batch has to be swept before its next record is folded,
// errNoMemory that memory has to be waited for as well.
var (
	errFull     = errors.New("the batch is full")
	errNoMemory = errors.New("no memory")
)

// run reads until the context ends or something stops it. What was folded by
// then is swept first: the cause of a halt lies behind it.
func (r *reader) run(ctx context.Context, at ledger.Position) (err error) {
	r.records = recordbatch.Reader{MaxRecord: r.maxResponse, MaxCodec: r.maxCodec, Memory: r.account}
	defer func() {
		r.records.Close()
		r.letters.forget()
		// What a call that was given up holds comes back by itself: not waited for.
		now, cancel := context.WithCancel(ctx)
		cancel()
		_ = r.fetcher.Drop(now)
		if ctx.Err() == nil {
			err = errors.Join(err, r.batches.drain(ctx))
		}
	}()
	for at.Sweeping() && !r.reached(at) {
		if at, err = r.resume(ctx, at); err != nil {
			return err
		}
	}
	if r.until != nil {
		return r.replay(ctx, at)
	}
	r.again = false
	for offset := at.From; ; {
		if offset, err = r.step(ctx, offset, -1); err != nil {
			return err
		}
	}
}

// step fetches one response and folds what lies in it before the offset limit, if that
// isn't negative, into the open batch. It returns the offset to go on from.
func (r *reader) step(ctx context.Context, offset, limit int64) (int64, error) {
	resp, err := r.fetch(ctx, offset)
	if errors.Is(err, errNoMemory) {
		return offset, r.waitForMemory(ctx)
	}
	if err != nil {
		return offset, err
	}
	defer resp.Release()
	more := resp.More()
	b := r.batches.open()
	if b == nil {
		if r.turnUsed { // its batch is being swept: the next worker's turn
			r.endTurn()
		}
		b = r.fresh(ledger.At(offset), 0)
	}
	for {
		before := b.records
		end, err := r.fold(ctx, b, resp, offset, limit)
		r.Stats.Records.Add(b.records - before)
		b.trail = r.times.at(end)
		b.MoveTo(end)
		if flushed := r.letters.flush(ctx); flushed != nil {
			r.batches.recycle(b)
			return offset, flushed
		}
		full, short := errors.Is(err, errFull), errors.Is(err, errNoMemory)
		switch {
		case full:
			if err := r.close(ctx, b); err != nil {
				return offset, err
			}
			offset, b = end, r.fresh(ledger.At(end), 0)
			continue
		case b.To() > b.From():
			r.turnUsed = r.hasTurn
			r.batches.put(b)
		case short && r.hasTurn && !r.turnUsed: // a whole reserve, and not one record
			r.batches.recycle(b)
			return end, r.tooLarge(end)
		default:
			r.batches.recycle(b)
		}
		if short {
			resp.Release()
			return end, r.waitForMemory(ctx)
		}
		if !more { // the next request may wait for long: not with a reserve
			r.endTurn()
		}
		return end, err
	}
}

// tooLarge says that what lies at an offset can't be read with all the memory that
// one partition can have.
func (r *reader) tooLarge(offset int64) *Halt {
	return &Halt{HaltTooLarge, fmt.Sprintf("the record batch of %s at offset %d takes more than %d bytes to read", r.field, offset, r.memory.Reserve()),
		"raise fold_memory, of which one partition can have a third"}
}

// endTurn lets the next one have what is left of a reserve, if this reader is on one. The
// account of a reader that reads outside of the budget is its worker's other reader's.
func (r *reader) endTurn() {
	if r.hasTurn {
		r.account.EndTurn()
	}
	r.hasTurn, r.turnUsed = false, false
}

// fresh takes a batch that starts at a position. There always is one: of the two
// the sweeper has at most one.
func (r *reader) fresh(at ledger.Position, repeated uint64) *batch {
	b := <-r.batches.free
	b.tally, b.records, b.newest, b.oldest = tally{}, 0, 0, 0
	b.Reset(at, repeated)
	return b
}

// close hands a batch over and, if it was on a reserve, lets the next one have it.
func (r *reader) close(ctx context.Context, b *batch) error {
	r.endTurn()
	if err := r.batches.close(ctx, b); err != nil {
		r.batches.recycle(b)
		return err
	}
	return nil
}

// waitForMemory has everything swept, gives everything back, and waits its turn.
// Nobody waits while holding.
func (r *reader) waitForMemory(ctx context.Context) error {
	r.endTurn()
	if err := r.fetcher.Drop(ctx); err != nil {
		return err
	}
	if err := r.batches.drain(ctx); err != nil {
		return err
	}
	said := false
	err := r.account.Wait(ctx, func(q memory.Queue) {
		if q.Still >= memoryStill || q.Waited >= memoryLong {
			r.blocked(r.noTurn(q))
			said = true
		}
	})
	if err != nil {
		return err
	}
	if said { // what else it waits for may go on
		r.blocked(nil)
	}
	r.hasTurn = true
	return nil
}

// A wait for a turn is ordinary while many partitions catch up: batches are large then,
// and one after the other is swept. It is a state of its own where nobody was served for
// so long, or where it takes that long although others are.
const (
	memoryStill = 30 * time.Second
	memoryLong  = 5 * time.Minute
)

func (r *reader) noTurn(q memory.Queue) error {
	return &Waiting{WaitsMemory,
		fmt.Errorf("%s has waited for %v for its turn at memory, with %d others: %d of %d bytes are in use, and nobody was served for %v",
			r.field, q.Waited.Round(time.Second), q.Waiting-1, q.Used, r.memory.Total(), q.Still.Round(time.Second)),
		"raise fold_memory, or run more replicas; what other partitions wait for holds up the memory that they have"}
}

// letGo gives back what is kept for the next response, before a wait for anything but
// that.
func (r *reader) letGo() {
	r.endTurn()
	r.fetcher.Free()
}

// lookAfter is how many records are gone through before the context is looked at: whoever
// has lost a partition stops at once, however large the response and hostile its ids.
const lookAfter = 1000

// fold adds a response's records from an offset on, and before the offset end if
// that isn't negative. It returns the offset to go on from.
func (r *reader) fold(ctx context.Context, b *batch, resp *fetch.Response, from, end int64) (to int64, err error) {
	defer func() { r.times.read(to) }()
	r.records.Reset(resp.Records, from, resp.Aborted)
	defer r.records.Close() // its window and codec are charged
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
		if err := r.one(ctx, b, rec); err != nil {
			return rec.Offset, err
		}
		b.records++
	}
}

// ended is what an end of the records comes to, theirs or an error's. Behind the offset
// end, if that isn't negative, both are alike: what can't be read there isn't asked for,
// and what carries nothing may reach past it.
func (r *reader) ended(end int64, err error) (int64, error) {
	at := r.records.Position()
	switch {
	case end >= 0 && at >= end:
		return end, nil
	case err == io.EOF: //nolint:errorlint // it comes bare
		return at, nil
	case errors.Is(err, recordbatch.ErrNoMemory):
		return at, errNoMemory
	}
	return at, r.failed(err)
}

// failed is what an error of the records comes to; others are as they are.
func (r *reader) failed(err error) error { return unreadable(err, r.topic, r.partition, &r.records) }

func unreadable(err error, topic string, partition int, records *recordbatch.Reader) error {
	name := fmt.Sprintf("%s/%d after offset %d: %v", topic, partition, records.Position(), err)
	switch {
	case errors.Is(err, recordbatch.ErrTooLarge):
		return &Halt{HaltTooLarge, name, "raise fold_memory"}
	case !errors.Is(err, recordbatch.ErrCorrupt) && !errors.Is(err, recordbatch.ErrTruncated):
		return err
	}
	return &Halt{HaltFormat, name, "see to the broker's disk and to what lies between it and here; if the record is lost, delete the log up to behind it (kafka-delete-records) and set on_gap: continue"}
}

// one folds one record, or says that the batch has no room for it.
func (r *reader) one(ctx context.Context, b *batch, rec *recordbatch.Record) error {
	r.times.note(rec.Offset, rec.Time)
	b.newest = max(b.newest, rec.Time)
	if rec.Time > 0 && (rec.Time < b.oldest || b.oldest == 0) {
		b.oldest = rec.Time
	}
	if rec.Value == nil && rec.Oversize == 0 {
		b.skipped++
		return nil
	}
	if rec.Oversize > 0 {
		return r.bad(ctx, b, rec, nil, event.Malformed, "the record is over max_event_bytes by far")
	}
	if bad := decode(r.decoder, rec, &r.event); bad != nil {
		return r.bad(ctx, b, rec, r.decoder.ID(), bad.Reason, bad.Message)
	}
	e := &r.folded
	*e = fold.Event{
		User: r.event.User, Hash: fold.Hash(r.event.User), Boards: r.event.Boards,
		Points: r.event.Points, Time: r.event.Time, RecordTime: rec.Time,
	}
	result, err := b.Add(e)
	if err != nil {
		return r.bad(ctx, b, rec, r.decoder.ID(), event.BadTime, err.Error())
	}
	switch result {
	case fold.Full:
		return errFull
	case fold.NoMemory:
		return errNoMemory
	case fold.Late:
		b.late++
	case fold.Repeated:
		b.repeated++
	}
	return nil
}

// decode reads a record as what its headers say that it is.
func decode(d *event.Decoder, rec *recordbatch.Record, into *event.Event) *event.Bad {
	if rec.HeaderCount == 0 {
		return d.Decode(rec.Value, rec.Time, into)
	}
	var h event.Headers
	rec.EachHeader(h.Note)
	return d.DecodeWith(&h, rec.Value, rec.Time, into)
}

// bad takes a record as one that can't count. id is the event's, nil where it isn't
// known.
func (r *reader) bad(ctx context.Context, b *batch, rec *recordbatch.Record, id []byte, reason event.Reason, message string) error {
	if !r.again && !r.done.has(rec.Offset) {
		r.letters.final = r.hasTurn && (b.Resumed() || b.records == 0)
		if err := r.letters.add(ctx, rec, id, reason, message); err != nil {
			return err
		}
	}
	b.dead[reasonIndex(reason)]++
	return nil
}
