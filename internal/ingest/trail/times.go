package trail

import (
	"math"
	"time"

	"github.com/standings/standings/internal/periods"
)

// Times follows the record times of a partition as it is read, and builds its trail. Only the reader uses it; a
// batch carries a copy of the trail.
type Times struct {
	Disorder int64                  // ms; math.MaxInt64 if the operator has not set it
	Broken   func(offset, by int64) // called for a record that contradicts Disorder, with the excess time
	Denied   func(offset int64)     // called if the trail turns out to be another log's

	trail Trail
	base  int64 // bounds the times before the start of reading
	// newest is the latest time read since the start. base may be later.
	newest int64
	markAt int64 // a mark precedes the next record of this time or later
	// untimed: a record without a time was read, and base does not cover it yet.
	untimed  bool
	furthest int64 // records before this offset were read before: a sweep may be read several times
}

// beyondAll is a record time, in Unix ms, from which on no window accepts an event, whatever its lateness. Such
// records may be deleted without loss. Without this limit, a single one (with microseconds instead of
// milliseconds) would set the latest time for good.
const beyondAll = 2 * periods.MaxTime

// Begin starts to read at an offset that the trail knows.
func (t *Times) Begin(known Trail, offset int64) {
	t.trail = known
	t.base, _ = known.Latest(offset)
	t.newest, t.markAt, t.untimed, t.furthest = 0, 0, false, offset
}

// Note records the time of a record. Offsets must ascend.
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

// mark adds a mark before a record that is at least one step later than all earlier ones.
func (t *Times) mark(offset, at int64) {
	t.trail.Add(offset, t.latest())
	t.markAt = at + min(markStep, math.MaxInt64-at)
}

// forget drops a trail that is not of this log. The current time then bounds the times of the records before
// those that were read.
func (t *Times) forget(offset int64) {
	t.trail = Trail{Lineage: t.trail.Lineage}
	t.base = max(t.base, time.Now().UnixMilli())
	t.Denied(offset)
}

// odd handles a record without a time, and one that is further behind an earlier record than Disorder allows.
//
// Without a record time, only the event's own occurred_at gives its time. The record's time is then taken to be
// no later than the time of reading.
func (t *Times) odd(offset, at int64) {
	switch {
	case at <= 0:
		t.untimed = true
	case offset >= t.furthest:
		t.furthest = offset + 1
		t.Broken(offset, t.newest-at)
	}
}

// latest returns a bound on the times of all records read so far and of those before.
func (t *Times) latest() int64 {
	if t.untimed {
		t.untimed = false
		t.base = max(t.base, time.Now().UnixMilli())
	}
	return max(t.base, t.newest)
}

// Read records that everything before an offset was read.
func (t *Times) Read(offset int64) { t.furthest = max(t.furthest, offset) }

// At returns the trail once everything before an offset was read.
func (t *Times) At(offset int64) Trail {
	t.trail.Add(offset, t.latest())
	return t.trail
}
