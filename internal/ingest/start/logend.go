package start

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// ConfirmFor is how long a log has to end before the ledger's position until
// that is believed: a leader that was just elected may not know its end yet.
const ConfirmFor = 10 * time.Second

// LogEnd is for how long a leader has shown that the log ends at an offset, without a
// break. A log that gives nothing more, though more was counted, was cut; but a leader
// that was just elected may not know its end yet, and an answer that is none, as a
// throttled one, shows nothing:
//
//	empty, 10 s of empty answers     the log ends there
//	empty, 10 s of throttle, empty   seen twice, for no time at all
//	empty, 10 s of errors, empty     seen once: by a new leader, perhaps
type LogEnd struct {
	offset int64
	last   time.Time     // of the answer before; zero where that wasn't an empty one
	shown  time.Duration // between empty answers that followed each other
}

// Seen is called with a leader's answer at an offset.
func (e *LogEnd) Seen(offset int64, empty bool) {
	now := time.Now()
	switch {
	case !empty, offset != e.offset:
		*e = LogEnd{offset: offset}
	case !e.last.IsZero():
		e.shown += now.Sub(e.last)
	}
	if empty {
		e.last = now
	}
}

// Unseen is called with an answer that says nothing of the log. What was shown before
// still holds.
func (e *LogEnd) Unseen() { e.last = time.Time{} }

// Confirmed reports whether the end was shown for as long as a log has to end before
// the ledger's position.
func (e *LogEnd) Confirmed() bool { return e.shown > ConfirmFor }

// Shortened is when a log was first seen to end before a position that counts, by its
// leaders' word; zero: it wasn't, or nobody answered since.
type Shortened struct{ Since time.Time }

// Confirm waits, look by look, until a log that ends before the position is believed.
func (s *Shortened) Confirm(field string, at ledger.Position, log kafkaconn.Log) error {
	if s.Since.IsZero() {
		s.Since = time.Now()
	}
	if time.Since(s.Since) < ConfirmFor {
		return fmt.Errorf("%s ends at offset %d, before the ledger's position %v", field, log.End, at)
	}
	return Truncated(field, at, log)
}
