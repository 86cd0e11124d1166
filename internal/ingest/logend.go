package ingest

import "time"

// end is for how long a leader has shown that the log ends at an offset, without a
// break. A log that gives nothing more, though more was counted, was cut; but a leader
// that was just elected may not know its end yet, and an answer that is none, as a
// throttled one, shows nothing:
//
//	empty, 10 s of empty answers     the log ends there
//	empty, 10 s of throttle, empty   seen twice, for no time at all
//	empty, 10 s of errors, empty     seen once: by a new leader, perhaps
type end struct {
	offset int64
	last   time.Time     // of the answer before; zero where that wasn't an empty one
	shown  time.Duration // between empty answers that followed each other
}

// seen is called with a leader's answer at an offset.
func (e *end) seen(offset int64, empty bool) {
	now := time.Now()
	switch {
	case !empty, offset != e.offset:
		*e = end{offset: offset}
	case !e.last.IsZero():
		e.shown += now.Sub(e.last)
	}
	if empty {
		e.last = now
	}
}

// unseen is called with an answer that says nothing of the log. What was shown before
// still holds.
func (e *end) unseen() { e.last = time.Time{} }

// confirmed reports whether the end was shown for as long as a log has to end before
// the ledger's position.
func (e *end) confirmed() bool { return e.shown > confirmFor }
