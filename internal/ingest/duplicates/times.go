package duplicates

import "sync/atomic"

// timesKept is about how many record times a set keeps.
const timesKept = 64

// times has the record times of some of a set's offsets, to report the span of time in which duplicates are
// found.
type times struct {
	every  int64
	due    int64
	kept   [timesKept + 2]stamp // a ring
	first  int
	count  int
	oldest atomic.Int64 // for the status, which reads it concurrently
}

type stamp struct{ offset, time int64 }

func (t *times) reset() {
	t.due, t.first, t.count = 0, 0, 0
	t.oldest.Store(0)
}

// Time records a record's time, in ms, for an offset that is passed next.
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

// Oldest returns approximately the record time, in ms, from which on duplicates are found; 0 if it is not known
// yet. It is safe for concurrent use.
func (s *Set) Oldest() int64 { return s.times.oldest.Load() }
