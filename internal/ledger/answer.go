package ledger

// Outcome is what came of a call that reached the ledger.
type Outcome int

const (
	// Applied: the piece is in, and the ledger is at its next position.
	Applied Outcome = iota
	// Moved: the ledger holds another position than expected; nothing was
	// written. Found is its text, empty where there is none.
	Moved
	// Held: a rebuild is about to swap; nothing was written. Try again.
	Held
	// Refusing: Refused can't be added, and the piece can without them; nothing was
	// written.
	Refusing
	// OtherSchema: the scores were written with another schema (Found).
	OtherSchema
	// Lost: a key that a listed window has to have is gone (Window).
	Lost
	// Unlisted: a window that isn't listed has a key (Window).
	Unlisted
	// OtherBounds: a listed window has other bounds (Window; Found is the listing, Start and End are in it).
	OtherBounds
	// Foreign: a member's score (Members) in Window is none that the layout writes.
	Foreign
	// OtherRule: a listed window was written by another rule of its board (Window; Found is
	// the listing).
	OtherRule
	// Sealed: windows (Windows) are final, and the piece has changes for them.
	Sealed
	// Unsealed: windows (Windows) aren't final, and the piece leaves them out as if they were.
	Unsealed
	// Fits: what a check answers where Apply would answer Applied.
	Fits
)

var outcomes = [...]string{"applied", "moved", "held", "refusing", "other schema", "lost", "unlisted", "other bounds", "foreign score", "other rule", "sealed", "unsealed", "fits"}

func (o Outcome) String() string { return outcomes[o] }

// Answer is the outcome with what it is about.
type Answer struct {
	Outcome Outcome
	Found   string
	Window  string
	// Start and End are in Unix ms. Both are 0 if the window isn't listed or its listing can't be read.
	Start, End int64
	Windows    []string // by their names in the listing
	Members    []string
	Refused    []Refusal
	// Beyond is where those of the refused who would leave a field's range would leave it:
	// only on boards that have a rule of their own.
	Beyond []Beyond
}

// Refusal is a member whose changes in a piece can't be added, and why: in one window or
// in several, and then in none, so that an event counts in all of its windows or in none.
type Refusal struct {
	Member string
	Reason Reason
}

// Beyond is the first field found whose range a member would leave.
type Beyond struct {
	Member string
	Window Window // without its bounds
	Field  int    // its number among the board's, from 1; 0: the change by itself leaves some field's range
	Digit  int64  // what the field would be, where fewest counts: how much less than its max
}

// Reason is why a member is refused.
type Reason uint8

const (
	// Overflow: a standing would leave the layout's range of points.
	Overflow Reason = iota + 1
	// WindowLimit: it would open a window beyond the number that may be listed.
	WindowLimit
	// Reasons is one more than the last: the size of an array by reason.
	Reasons
)

// Verdict is what an error asks of whoever met it.
type Verdict int

const (
	// Retry: it may pass by itself; try again with a growing wait.
	Retry Verdict = iota
	// DeadLetter: this one record can't go through, others can.
	DeadLetter
	// Halt: this partition stops and says why, until the cause is gone.
	Halt
	// Refuse: the process can't do its work at all, and says what to fix.
	Refuse
)

var verdicts = [...]string{"retry", "dead-letter", "halt", "refuse"}

func (v Verdict) String() string { return verdicts[v] }

// AtStart is what a verdict asks for before anything was done: a process whose Kafka or Redis
// will never let it work says so and ends, instead of waiting.
func (v Verdict) AtStart() Verdict {
	if v == Halt {
		return Refuse
	}
	return v
}
