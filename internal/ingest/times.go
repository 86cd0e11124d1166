package ingest

import (
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/periods"
)

// times follows the record times of a partition as it is read, and makes the trail of
// them. It is the reader's; what a batch carries of it is a copy.
type times struct {
	trail trail
	base  int64 // bounds the times before where reading began
	// newest is the latest time that was read since, which base needn't be.
	newest int64
	markAt int64 // a record of this time or later comes behind a mark
	// untimed: a record without a time was read, and isn't in base yet.
	untimed  bool
	furthest int64 // what is before this was read before: a sweep may be read several times

	disorder int64                  // ms; math.MaxInt64 without the operator's word
	broken   func(offset, by int64) // called for a record that breaks it
	denied   func(offset int64)     // called where the trail turns out to be another log's
}

// beyondAll is a record time, Unix ms, from which on no window takes an event, however long
// its lateness may be set: what is deleted of such records is missing nowhere. One of them
// (microseconds for milliseconds) would else be the latest there ever was.
const beyondAll = 2 * periods.MaxTime

// from begins at an offset, of which the trail knows something.
func (t *times) from(known trail, offset int64) {
	t.trail = known
	t.base, _ = known.latest(offset)
	t.newest, t.markAt, t.untimed, t.furthest = 0, 0, false, offset
}

// note takes a record's time, in the order of offsets.
func (t *times) note(offset, at int64) {
	if at > t.newest {
		if at >= beyondAll {
			return
		}
		if offset < t.trail.last().offset && t.trail.denies(offset, at) {
			t.forget(offset)
		}
		if at >= t.markAt {
			t.mark(offset, at)
		}
		t.newest = at
	} else if at <= 0 || at < t.newest-t.disorder {
		t.odd(offset, at)
	}
}

// mark notes what came before a record that is later by a step than all of it.
func (t *times) mark(offset, at int64) {
	t.trail.add(offset, t.latest())
	t.markAt = at + min(markStep, math.MaxInt64-at)
}

// forget drops a trail that isn't of this log. What bounds the records before those that
// were read is the moment.
func (t *times) forget(offset int64) {
	t.trail = trail{}
	t.base = max(t.base, time.Now().UnixMilli())
	t.denied(offset)
}

// odd is a record without a time, or one that is further behind an earlier one than the
// operator says.
//
// Where there is no record time, nothing but its own occurred_at says when an event was:
// it is taken as no later than the moment at which it was read.
func (t *times) odd(offset, at int64) {
	switch {
	case at <= 0:
		t.untimed = true
	case offset >= t.furthest:
		t.furthest = offset + 1
		t.broken(offset, t.newest-at)
	}
}

// latest bounds the times of all that was read, and of what came before it.
func (t *times) latest() int64 {
	if t.untimed {
		t.untimed = false
		t.base = max(t.base, time.Now().UnixMilli())
	}
	return max(t.base, t.newest)
}

// read says that all before an offset was read.
func (t *times) read(offset int64) { t.furthest = max(t.furthest, offset) }

// at is the trail once all before an offset was read.
func (t *times) at(offset int64) trail {
	t.trail.add(offset, t.latest())
	return t.trail
}

// disorderTold is how often a log that breaks the operator's word is told of.
const disorderTold = time.Minute

// deniedTrail reports a trail that a record has shown to be another log's.
func (w *worker) deniedTrail(offset int64) {
	w.log.Warn("a record is later than what the group's offsets say of its log, which was truncated or made again: what they say is dropped, and windows count as incomplete up to now",
		zap.Int64("offset", offset))
}

// disordered counts a record that breaks the operator's word, and tells of it.
func (w *worker) disordered(offset, by int64) {
	w.Stats.Disordered.Add(1)
	if time.Since(w.disorderSaid) < disorderTold {
		return
	}
	w.disorderSaid = time.Now()
	w.log.Warn("a record's time lies further before that of an earlier one than disorder says: windows may be taken for complete that aren't",
		zap.Int64("offset", offset), zap.Duration("behind", time.Duration(min(by, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond),
		zap.Duration("disorder", *w.Disorder))
}
