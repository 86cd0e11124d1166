package ingest

// Duplicates: which of a partition's events have the ids of a valid one just before.
//
// What a reading finds is a function of the log from so many offsets before the reading's first
// one on. So before a reading begins those are read, for their ids alone. That first offset is
// the sweep's where a sweep is read, whoever began it and however far it has come:
//
//	looked through      read, and folded
//	[from-n, from)      [from, to)          the ledger at from..to@hash
//
// A reading by the rules of another owner has others that are valid, and looks through them anew.
//
// Where readings follow each other what is known goes on, and nothing is read twice. One that
// goes back (another look at a sweep, shards that stand further behind, a ledger that has moved,
// a Redis that went back in time) has its offsets looked through anew.
//
// Valid is an event by its record and the rules alone: one that is no dead letter when it is
// decoded, and whose time a calendar has. Whether the standings refuse it, whether it is late and
// whether it is a duplicate itself doesn't matter.

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
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// lookBack is what a partition knows of the ids before the next offset. It is its worker's, and
// lent to the reader of a flow.
type lookBack struct {
	rules   *rulebook       // what finds them; nil before the first flow
	records int64           // to look back; 0: repeats count
	set     *duplicates.Set // nil before the first flow
	begun   int64           // the set has what is at this offset and later
	// whole: also of all that the log had before, as far as it matters.
	whole bool
}

// on has the set made, if there is to be one.
func (l *lookBack) on(s *health.Status) {
	if l.records == 0 || l.set != nil {
		return
	}
	l.set = duplicates.New(l.records)
	s.Remembers(l.set)
}

// by has the set be of what some rules find: what others found in the same records is void.
func (l *lookBack) by(rules *rulebook, s *health.Status) {
	if l.rules != rules {
		if l.records != rules.duplicates {
			l.set = nil
			s.Remembers(nil)
		}
		l.rules, l.records = rules, rules.duplicates
		l.begun, l.whole = math.MaxInt64, false
	}
	l.on(s)
}

// free gives the set back, once the partition is given up.
func (l *lookBack) free() {
	*l = lookBack{}
}

// begin has the set hold what is known from an offset on, of that what it has already, where all
// before another is read next. It returns the offset to read from.
func (l *lookBack) begin(at, next int64) int64 {
	if s := l.set; (l.whole || l.begun <= at) && at <= s.Next() && s.Next() <= next {
		return s.Next()
	}
	l.set.Begin(at)
	l.begun, l.whole = at, false
	return at
}

// look has the set know what is before an offset, which is read next. Nothing that was
// folded is held.
func (r *reader) look(ctx context.Context, next int64) error {
	l := r.known
	if l == nil || l.whole && l.set.Next() == next {
		return nil
	}
	defer r.status.LooksBack(nil)
	began := time.Now()
	all, err := kafkaconn.Logs(ctx, r.kafka, r.Topic, r.Number)
	if err != nil {
		return fmt.Errorf("look for duplicates before offset %d of %s: %w", next, r.field, err)
	}
	first := max(0, next-l.records)
	at := min(max(first, all[r.Number].Start), next)
	if at > first {
		r.log.Warn("Kafka has deleted records that would be looked through for duplicates: what repeats one of them counts",
			zap.Int64("from", first), zap.Int64("log_start", at), zap.Int64("to", next))
	}
	from := l.begin(at, next)
	// The log's start may move on meanwhile: then the flow ends, and the next one begins anew.
	if err := r.lookThrough(ctx, from, next); err != nil {
		return err
	}
	l.set.Pass(next)
	l.whole = true
	r.log.Info("looked through records for duplicates", zap.Int64("from", from), zap.Int64("to", next),
		zap.Duration("took", time.Since(began).Round(time.Millisecond)))
	return nil
}

// lookThrough reads records for their ids.
func (r *reader) lookThrough(ctx context.Context, offset, next int64) error {
	r.source.end = start.LogEnd{}
	stuck := int64(-1)
	for offset < next {
		r.status.LooksBack(fmt.Errorf("reading %d records before offset %d of %s for duplicates: %d are left", r.known.records, next, r.field, next-offset))
		if r.source.end.Confirmed() {
			r.known.whole = false
			return r.until.shortLog(r.field, offset, ledger.Reading{From: offset, To: next})
		}
		resp, err := r.source.fetch(ctx, offset)
		if err == nil {
			offset, err = r.lookAt(ctx, resp, offset, next)
			resp.Release()
		}
		switch {
		case err == nil:
		case !errors.Is(err, errNoMemory):
			return err
		case r.turn.taken && stuck == offset: // a whole reserve, and not one record
			return r.tooLarge(offset)
		default:
			stuck = offset
			if err := r.turn.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt adds the ids of a response's valid events from an offset on, and before another. It
// returns the offset to go on from.
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

// id is that of the event that was decoded last, if it has one.
func (r *reader) id() (duplicates.ID, bool) {
	id := r.decoder.ID()
	if len(id) == 0 {
		return duplicates.ID{}, false
	}
	return duplicates.Of(id, r.event.User), true
}

// repeats takes the event that was decoded last as a duplicate. Like one that is late, it is
// counted with the last piece of its batch, whatever shard its member is in.
func (r *reader) repeats(ctx context.Context, b *batch, rec *recordbatch.Record, id duplicates.ID) error {
	e := &r.folded
	if _, err := b.Left(e.Boards, e.Hash, e.Offset, e.Time, e.RecordTime); err != nil {
		return r.bad(ctx, b, rec, r.decoder.ID(), event.BadTime, err.Error())
	}
	switch b.Duplicate(e) {
	case fold.Full:
		return errFull
	case fold.NoMemory:
		return errNoMemory
	}
	b.duplicates++
	r.known.set.Add(rec.Offset, id)
	return nil
}
