package retry

import "time"

// LogLimit keeps a log line that would come with every try, or with every record, to one
// an interval. Its zero value has logged nothing yet. It isn't safe for concurrent use.
type LogLimit struct{ last time.Time }

// Due reports whether the line is to be logged now, and counts it as logged if so: the
// first at once, the next an interval after it.
func (l *LogLimit) Due(every time.Duration) bool {
	if !l.last.IsZero() && time.Since(l.last) < every {
		return false
	}
	l.last = time.Now()
	return true
}

// Delay has the first line come an interval from now, too: for a failure that has mostly
// passed by then. It changes nothing between two lines.
func (l *LogLimit) Delay() {
	if l.last.IsZero() {
		l.last = time.Now()
	}
}

// Reset has the next line be the first again.
func (l *LogLimit) Reset() { l.last = time.Time{} }
