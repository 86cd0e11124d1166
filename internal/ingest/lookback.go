package ingest

// This file detects duplicates: events with the same ids as an earlier valid event of the partition, within a
// given number of offsets.
//
// The result of a reading is a function of the log, from that number of offsets before the reading's first
// offset on. So these earlier records are read before a reading starts, only for their ids. In a sweep, the
// first offset is the start of the sweep, whichever worker started it and however far it has progressed:
//
//	looked through      read and folded
//	[from-n, from)      [from, to)          the ledger is at from..to@hash
//
// Other rules make other events valid, so a reading by another owner's rules looks through the records again.
//
// If readings follow each other, the set of known ids is kept and nothing is read twice. If a reading goes back
// (a sweep is read again, shards are further behind, a ledger has moved, Redis rolled back), its earlier
// offsets are looked through again.
//
// An event is valid if it decodes without becoming a dead letter and a calendar has its time. That depends only
// on its record and the rules. It doesn't matter whether the standings refuse the event, whether it is late, or
// whether it is a duplicate itself.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// lookBack has the ids that a partition knows before the next offset. It belongs to the worker, which lends it
// to the reader of a flow.
type lookBack struct {
	rules   *rulebook.Book  // by which ids were found; nil before the first flow
	records int64           // number of records to look back; 0: no duplicate detection
	set     *duplicates.Set // nil before the first flow
	begun   int64           // the set has the ids at this offset and later
	// whole is true if the set also has all earlier ids in the log that matter.
	whole bool
}

// on creates the set if duplicate detection is on.
func (l *lookBack) on(s *health.Status) {
	if l.records == 0 || l.set != nil {
		return
	}
	l.set = duplicates.New(l.records)
	s.Remembers(l.set)
}

// by selects the rules by which ids are found. Ids that other rules found are void.
func (l *lookBack) by(rules *rulebook.Book, s *health.Status) {
	if l.rules != rules {
		if l.records != rules.Duplicates {
			l.set = nil
			s.Remembers(nil)
		}
		l.rules, l.records = rules, rules.Duplicates
		l.begun, l.whole = math.MaxInt64, false
	}
	l.on(s)
}

// free releases the set once the partition is given up.
func (l *lookBack) free() {
	*l = lookBack{}
}

// begin prepares the set to know the ids from at to next, where reading continues, and keeps those that it has.
// It returns the offset from which records must be looked through.
func (l *lookBack) begin(at, next int64) int64 {
	if s := l.set; (l.whole || l.begun <= at) && at <= s.Next() && s.Next() <= next {
		return s.Next()
	}
	l.set.Begin(at)
	l.begun, l.whole = at, false
	return at
}

// look fills the set with the ids before next, the offset that is read next. The reader holds no folded events
// meanwhile.
func (r *reader) look(ctx context.Context, next int64) error {
	l := r.known
	if l == nil || l.whole && l.set.Next() == next {
		return nil
	}
	defer r.status.LooksBack(nil)
	began := time.Now()
	all, err := kafkaconn.Logs(ctx, r.Kafka, r.Topic, r.Number)
	if err != nil {
		return fmt.Errorf("look for duplicates before offset %d of %s: %w", next, r.Field, err)
	}
	first := max(0, next-l.records)
	at := min(max(first, all[r.Number].Start), next)
	if at > first {
		r.Log.Warn("Kafka has deleted records that would be looked through for duplicates: what repeats one of them counts",
			zap.Int64("from", first), zap.Int64("log_start", at), zap.Int64("to", next))
	}
	from := l.begin(at, next)
	// If the log's start moves past from meanwhile, the flow ends and the next one looks again.
	if err := r.lookThrough(ctx, from, next); err != nil {
		return err
	}
	l.set.Pass(next)
	l.whole = true
	r.Log.Info("looked through records for duplicates", zap.Int64("from", from), zap.Int64("to", next),
		zap.Duration("took", time.Since(began).Round(time.Millisecond)))
	return nil
}

// lookThrough reads the records from offset to next for their ids.
func (r *reader) lookThrough(ctx context.Context, offset, next int64) error {
	r.source.End = start.LogEnd{}
	stuck := int64(-1)
	for offset < next {
		r.status.LooksBack(fmt.Errorf("reading %d records before offset %d of %s for duplicates: %d are left", r.known.records, next, r.Field, next-offset))
		if r.source.End.Confirmed() {
			r.known.whole = false
			return r.until.ShortLog(r.Field, offset, ledger.Reading{From: offset, To: next})
		}
		resp, err := r.source.Fetch(ctx, offset)
		if err == nil {
			offset, err = r.lookAt(ctx, resp, offset, next)
			resp.Release()
		}
		switch {
		case err == nil:
		case !errors.Is(err, source.ErrNoMemory):
			return err
		case r.turn.Taken && stuck == offset: // a whole reserve did not suffice for one record
			return r.tooLarge(offset)
		default:
			stuck = offset
			if err := r.turn.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt adds the ids of a response's valid events from an offset on, up to next. It returns the offset from
// which to continue.
func (r *reader) lookAt(ctx context.Context, resp *fetch.Response, from, next int64) (int64, error) {
	resp.Read(&r.records, from)
	defer r.records.Close()
	for n := 0; ; n++ {
		if n%lookAfter == 0 && ctx.Err() != nil {
			return r.records.Position(), context.Cause(ctx)
		}
		rec, err := r.records.Next()
		if err != nil {
			return r.ended(next, err)
		}
		if rec.Offset >= next {
			return next, nil
		}
		r.known.set.Time(rec.Offset, rec.Time)
		if rec.Value == nil || rec.Oversize > 0 || decode(r.decoder, rec, &r.event) != nil {
			continue
		}
		if id, ok := r.id(); ok {
			if _, err := r.judge.Left(r.event.Boards, fold.Hash(r.event.User), rec.Offset, r.event.Time, rec.Time); err == nil {
				r.known.set.Add(rec.Offset, id)
			}
		}
	}
}

// id returns the duplicate id of the last decoded event, if it has one.
func (r *reader) id() (duplicates.ID, bool) {
	id := r.decoder.ID()
	if len(id) == 0 {
		return duplicates.ID{}, false
	}
	return duplicates.Of(id, r.event.User), true
}

// repeats handles the last decoded event as a duplicate. Like a late event, it is counted with the last piece
// of its batch, in whatever shard its member is.
func (r *reader) repeats(ctx context.Context, b *batch, rec *recordbatch.Record, id duplicates.ID) error {
	e := &r.folded
	if _, err := b.Left(e.Boards, e.Hash, e.Offset, e.Time, e.RecordTime); err != nil {
		return r.bad(ctx, b, rec, r.decoder.ID(), event.BadTime, err.Error())
	}
	switch b.Duplicate(e) {
	case fold.Full:
		return errFull
	case fold.NoMemory:
		return source.ErrNoMemory
	}
	b.Duplicates++
	r.known.set.Add(rec.Offset, id)
	return nil
}
