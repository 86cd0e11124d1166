package ledger

// Border is a border to be settled: where one calendar window ends and the next one starts.
type Border struct {
	Name string // periods.Border as text
	At   int64  // by the caller's time zone data, Unix ms
	Keep int64  // until when it is kept, Unix ms: longer than any window that starts or ends there
}

// Settled is the instant of a border, if it is settled.
type Settled struct {
	At int64 // Unix ms
	OK bool
}
