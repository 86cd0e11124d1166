package ledger

// Outcome is what came of a call that reached the ledger.
type Outcome int

const (
	// Applied: the piece is in, and the ledger stands at its next position.
	Applied Outcome = iota
	// Moved: the ledger holds another position than expected; nothing was
	// written. Found is its text, empty where there is none.
	Moved
	// Held: a rebuild is about to swap; nothing was written. Try again.
	Held
	// Overflow: Members would pass the layout's range; nothing was written.
	Overflow
	// OtherSchema: the scores were written with another schema (Found).
	OtherSchema
	// Lost: a listed window's key is gone (Window).
	Lost
	// Unlisted: a window that isn't listed has a key (Window).
	Unlisted
	// OtherBounds: a listed window has other bounds (Window; Found is the listing).
	OtherBounds
	// Foreign: a member's score (Members) in Window is none that the layout writes.
	Foreign
)

var outcomes = [...]string{"applied", "moved", "held", "overflow", "other schema", "lost", "unlisted", "other bounds", "foreign score"}

func (o Outcome) String() string { return outcomes[o] }

// Answer is the outcome with what it is about.
type Answer struct {
	Outcome Outcome
	Found   string
	Window  string
	Members []string
}

// Verdict is what an error asks of whoever met it.
type Verdict int

const (
	// Retry: it may pass by itself; try again with a growing wait.
	Retry Verdict = iota
	// DeadLetter: this one record can't go through, others can.
	DeadLetter
	// Halt: this partition stops and says why, until the cause is gone.
	Halt
	// Refuse: the process can't do its work at all, and says what to mend.
	Refuse
)

var verdicts = [...]string{"retry", "dead-letter", "halt", "refuse"}

func (v Verdict) String() string { return verdicts[v] }
