package start

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// ConfirmFor is how long a log must end before the ledger's position until that is taken as fact: a newly
// elected leader may not know the log's end yet.
const ConfirmFor = 10 * time.Second

// LogEnd measures for how long a leader has shown, without a break, that the log ends at an offset. If a log
// returns no more records although later offsets were counted, it was truncated. But a newly elected leader may
// not know the log's end yet, and an answer without data, such as a throttled one, proves nothing:
//
//	empty, 10 s of empty answers     the log ends there
//	empty, 10 s of throttle, empty   shown for 0 s: the two answers are not consecutive
//	empty, 10 s of errors, empty     shown for 0 s: perhaps by a new leader
type LogEnd struct {
	offset int64
	last   time.Time     // the time of the previous answer; zero if it was not an empty one
	shown  time.Duration // between consecutive empty answers
}

// Seen records a leader's answer at an offset.
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

// Unseen records an answer that proves nothing about the log. What was shown before still counts.
func (e *LogEnd) Unseen() { e.last = time.Time{} }

// Confirmed reports whether the end was shown for longer than ConfirmFor.
func (e *LogEnd) Confirmed() bool { return e.shown > ConfirmFor }

// Shortened is the time at which a log was first seen to end before a position that counts, by its leader's
// answer. It is zero if that was not seen, or no leader has answered since.
type Shortened struct{ Since time.Time }

// Confirm is called with each answer. It returns a halt once the log has ended before the position for
// ConfirmFor, and a transient error until then.
func (s *Shortened) Confirm(field string, at ledger.Position, log kafkaconn.Log) error {
	if s.Since.IsZero() {
		s.Since = time.Now()
	}
	if time.Since(s.Since) < ConfirmFor {
		return fmt.Errorf("%s ends at offset %d, before the ledger's position %v", field, log.End, at)
	}
	return Truncated(field, at, log)
}
