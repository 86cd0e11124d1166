package retry

import "time"

// LogLimit limits a log line that each try, or each record, would cause to one per interval. Its zero value has
// logged nothing yet. It is not safe for concurrent use.
type LogLimit struct{ last time.Time }

// Due reports whether the line must be logged now, and if so counts it as logged: the first at once, the next
// an interval later.
func (l *LogLimit) Due(every time.Duration) bool {
	if !l.last.IsZero() && time.Since(l.last) < every {
		return false
	}
	l.last = time.Now()
	return true
}

// Delay delays the first line by an interval as well, for failures that are mostly over by then. Between two
// lines it changes nothing.
func (l *LogLimit) Delay() {
	if l.last.IsZero() {
		l.last = time.Now()
	}
}

// Reset makes the next line the first again.
func (l *LogLimit) Reset() { l.last = time.Time{} }
