package duplicates

import "sync/atomic"

// timesKept is about how many record times are kept of a set's records.
const timesKept = 64

// times are record times of some of a set's offsets, so that it can be said how long the time is
// in which a duplicate is found.
type times struct {
	every  int64
	due    int64
	kept   [timesKept + 2]stamp // a ring
	first  int
	count  int
	oldest atomic.Int64 // for whoever shows it
}

type stamp struct{ offset, time int64 }

func (t *times) reset() {
	t.due, t.first, t.count = 0, 0, 0
	t.oldest.Store(0)
}

// Time notes a record's time, in ms, of an offset that is passed next.
func (s *Set) Time(offset, time int64) {
	if t := &s.times; offset >= t.due && time > 0 {
		t.note(offset, time, offset-int64(len(s.ring)))
	}
}

func (t *times) note(offset, time, from int64) {
	t.due = offset + t.every
	for t.count > 0 && (t.kept[t.first].offset < from || t.count == len(t.kept)) {
		t.first, t.count = (t.first+1)%len(t.kept), t.count-1
	}
	t.kept[(t.first+t.count)%len(t.kept)] = stamp{offset, time}
	t.count++
	t.oldest.Store(t.kept[t.first].time)
}

// Oldest is about the record time, in ms, from which on duplicates are found; 0 if that isn't
// known yet. It may be asked by anybody at any time.
func (s *Set) Oldest() int64 { return s.times.oldest.Load() }
