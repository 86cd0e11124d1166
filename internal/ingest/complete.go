package ingest

// What a start can prove: which windows lack no record, though records before it were
// deleted. Record times aren't monotonic (an offline client's events carry old times), so
// the first record that is left says nothing by itself of those that were before it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// beginning is where one partition of a topic begins: what Kafka answered for it.
type beginning struct {
	log   bounds
	since int64 // the first offset of the time asked for, or -1
	first first // the log's first record
	trail trail // that the group committed
}

// first is the first record from an offset on.
type first struct {
	none     bool  // there is no record
	time     int64 // Unix ms; 0 where it has none
	appended bool  // the time is the broker's: LogAppendTime
}

// clock is Redis's, as of when it is looked at. Where nothing else bounds the times of
// records that were deleted, it is the moment after Kafka has answered that does:
//
//	Redis is asked     the process sleeps            Kafka is asked
//	its clock is T0    a record of T1 comes, and     the log begins behind it
//	                   is deleted
//
// T0 would bound nothing.
type clock func() time.Time

// judge is what all partitions of a topic are judged by.
type judge struct {
	now       int64  // Redis's clock, Unix ms
	maxFuture int64  // ms
	disorder  *int64 // ms; nil without the operator's word
}

func (w *worker) judgeAt(now time.Time) judge {
	j := judge{now: now.UnixMilli(), maxFuture: w.Events.MaxFuture}
	if w.Disorder != nil {
		d := w.Disorder.Milliseconds()
		j.disorder = &d
	}
	return j
}

// disorder is the operator's word in ms, without one more than any two times are apart.
func (w *worker) disorder() int64 {
	if w.Disorder == nil {
		return math.MaxInt64
	}
	return w.Disorder.Milliseconds()
}

// latest bounds the times of the records before an offset, of which the first record from
// there on is known: the lowest of the bounds that hold. 0 says that none has a time. It is
// false where nothing holds but the moment.
//
//   - offset 0: there were none;
//   - the trail;
//   - LogAppendTime: brokers' times don't go back;
//   - the operator's word on disorder;
//   - else the moment at which it was looked, or what the trail knows to be later.
func (j judge) latest(offset int64, t *trail, f first) (best int64, ok bool) {
	if offset == 0 {
		return 0, true
	}
	best, ok = t.latest(offset)
	better := func(at int64) {
		if !ok || at < best {
			best, ok = at, true
		}
	}
	if !f.none && f.time > 0 {
		if f.appended {
			better(f.time)
		}
		if j.disorder != nil {
			better(sum(f.time, *j.disorder))
		}
	}
	if !ok {
		best = max(j.now, t.last().time)
	}
	return best, ok
}

// origin of a partition that is read from an offset on, where the records before it have
// times of at most latest. An event lies at most max_future after its record, so one that
// is missing lies before the origin's time.
func (j judge) origin(offset, latest int64) ledger.Origin {
	if offset == 0 || latest <= 0 {
		return ledger.Origin{Offset: offset}
	}
	return ledger.Origin{Offset: offset, Time: sum(latest, j.maxFuture+1)}
}

// sum of two that aren't negative, or the most that there is.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// resolve turns a start into an offset, and bounds the times of the records before it.
// asked is the time that was asked for, in ms.
func (j judge) resolve(s StartFrom, b *beginning, asked int64) (at, latest int64) {
	at = b.log.start
	latest, _ = j.latest(at, &b.trail, b.first)
	switch s {
	case FromLatest:
		at = b.log.end
		if at > b.log.start {
			latest, _ = j.latest(at, &b.trail, first{none: true})
		}
	case FromWindow, FromTime:
		switch {
		case !b.first.none && b.first.time <= 0: // no times to go by
		case b.since < 0:
			at = b.log.end // all records are older
		default:
			at = b.since
		}
		if at > b.log.start { // what is left of those before is older than asked
			latest = max(latest, asked-1)
		}
	case FromEarliest:
	}
	return at, latest
}

// reaches reports whether a log lacks no record of a time or later: it begins at offset 0,
// or all that was deleted is bounded to be older.
func (j judge) reaches(b *beginning, asked int64) bool {
	latest, _ := j.latest(b.log.start, &b.trail, b.first)
	return latest <= 0 || latest < asked
}

// firstRecord looks at the first record of a log. Errors that pass are waited out for a
// while: who asks about all partitions of a topic would begin with the first again.
func (w *worker) firstRecord(ctx context.Context, partition int, log bounds) (first, error) {
	f := w.fetcher(nil)
	f.Partition, f.MaxBytes = partition, min(f.MaxBytes, 64<<10) // more than it may take it would take for one batch
	records := recordbatch.Reader{MaxRecord: w.maxResponse, MaxCodec: w.maxCodec}
	defer records.Close()
	wait, shown, heard := newWait(), end{}, time.Now()
	for at := log.start; at < log.end; {
		resp, err := f.Fetch(ctx, at)
		if err == nil {
			err = resp.Err
		}
		if err = unfetchable(err, ledger.Field(w.topic, partition), at); err != nil {
			shown.unseen()
			switch halt, halts := errors.AsType[*Halt](err); {
			case halts:
				return first{}, halt
			case ctx.Err() != nil, !passes(err), time.Since(heard) >= outagePatience:
				return first{}, fmt.Errorf("read the first record of %s/%d: %w", w.topic, partition, err)
			}
			w.Stats.KafkaTries.Add(1)
			if err := wait.next(ctx); err != nil {
				return first{}, err
			}
			continue
		}
		heard = time.Now()
		w.throttled(resp.Throttled)
		if !resp.Answered() {
			shown.unseen()
			if resp.Throttled == 0 {
				return first{}, fmt.Errorf("read the first record of %s/%d: the broker didn't answer for it", w.topic, partition)
			}
			continue // the next call waits for that
		}
		records.Reset(resp.Records, at, resp.Aborted)
		rec, err := records.Next()
		if err == nil {
			found := first{time: max(rec.Time, 0), appended: records.LogAppendTime()}
			resp.Release()
			return found, nil
		}
		resp.Release()
		if !errors.Is(err, io.EOF) {
			return first{}, unreadable(err, w.topic, partition, &records)
		}
		came := records.Position() > at
		if shown.seen(at, !came); came {
			at = records.Position()
			continue
		}
		if shown.confirmed() {
			return first{}, fmt.Errorf("read the first record of %s/%d: nothing came", w.topic, partition)
		}
		if err := wait.next(ctx); err != nil {
			return first{}, err
		}
	}
	return first{none: true}, nil
}
