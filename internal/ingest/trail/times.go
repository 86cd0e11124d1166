package trail

import (
	"math"
	"time"

	"github.com/standings/standings/internal/periods"
)

// Times follows the record times of a partition as it is read, and makes the trail of
// them. It is the reader's; what a batch carries of it is a copy.
type Times struct {
	Disorder int64                  // ms; math.MaxInt64 without the operator's word
	Broken   func(offset, by int64) // called for a record that breaks it
	Denied   func(offset int64)     // called where the trail turns out to be another log's

	trail Trail
	base  int64 // bounds the times before where reading began
	// newest is the latest time that was read since, which base needn't be.
	newest int64
	markAt int64 // a record of this time or later comes behind a mark
	// untimed: a record without a time was read, and isn't in base yet.
	untimed  bool
	furthest int64 // what is before this was read before: a sweep may be read several times
}

// beyondAll is a record time, Unix ms, from which on no window takes an event, however long
// its lateness may be set: what is deleted of such records is missing nowhere. One of them
// (microseconds for milliseconds) would else be the latest there ever was.
const beyondAll = 2 * periods.MaxTime

// Begin starts at an offset, of which the trail knows something.
func (t *Times) Begin(known Trail, offset int64) {
	t.trail = known
	t.base, _ = known.Latest(offset)
	t.newest, t.markAt, t.untimed, t.furthest = 0, 0, false, offset
}

// Note takes a record's time, in the order of offsets.
func (t *Times) Note(offset, at int64) {
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
	} else if at <= 0 || at < t.newest-t.Disorder {
		t.odd(offset, at)
	}
}

// mark notes what came before a record that is later by a step than all of it.
func (t *Times) mark(offset, at int64) {
	t.trail.Add(offset, t.latest())
	t.markAt = at + min(markStep, math.MaxInt64-at)
}

// forget drops a trail that isn't of this log. What bounds the records before those that
// were read is the moment.
func (t *Times) forget(offset int64) {
	t.trail = Trail{Lineage: t.trail.Lineage}
	t.base = max(t.base, time.Now().UnixMilli())
	t.Denied(offset)
}

// odd is a record without a time, or one that is further behind an earlier one than the
// operator says.
//
// Where there is no record time, nothing but its own occurred_at says when an event was:
// it is taken as no later than the moment at which it was read.
func (t *Times) odd(offset, at int64) {
	switch {
	case at <= 0:
		t.untimed = true
	case offset >= t.furthest:
		t.furthest = offset + 1
		t.Broken(offset, t.newest-at)
	}
}

// latest bounds the times of all that was read, and of what came before it.
func (t *Times) latest() int64 {
	if t.untimed {
		t.untimed = false
		t.base = max(t.base, time.Now().UnixMilli())
	}
	return max(t.base, t.newest)
}

// Read says that all before an offset was read.
func (t *Times) Read(offset int64) { t.furthest = max(t.furthest, offset) }

// At is the trail once all before an offset was read.
func (t *Times) At(offset int64) Trail {
	t.trail.Add(offset, t.latest())
	return t.trail
}
