package ledger

// Border is where a window of a calendar starts and another one ends, as it is to be settled.
type Border struct {
	Name string // periods.Border as text
	At   int64  // by the caller's time zone data, Unix ms
	Keep int64  // until when it is kept: longer than any window that starts or ends there
}

// Settled is where a border is, if it is settled.
type Settled struct {
	At int64 // Unix ms
	OK bool
}
