package ledger

// Outcome is the outcome of a call that reached the ledger.
type Outcome int

const (
	// Applied means that the piece is written, and the ledger is at its next position.
	Applied Outcome = iota
	// Moved means that the ledger isn't at the expected position; nothing was written. Found is the
	// ledger's text, empty if it has none.
	Moved
	// Held means that a rebuild is about to swap; nothing was written. Try again.
	Held
	// Refusing means that the members in Refused can't be added; nothing was written. The piece can be sent
	// without them.
	Refusing
	// OtherSchema means that the scores were written with another schema (Found).
	OtherSchema
	// Lost means that a key that a listed window must have is gone (Window).
	Lost
	// Unlisted means that a window that isn't listed has a key (Window).
	Unlisted
	// OtherBounds means that a listed window has other bounds (Window, Start and End; Found is the
	// listing).
	OtherBounds
	// Foreign means that the layout doesn't write the score of a member (Members) in Window.
	Foreign
	// OtherRule means that a listed window was written by another rule of its board (Window; Found is the
	// listing).
	OtherRule
	// Sealed means that windows (Windows) are final, and the piece has changes for them.
	Sealed
	// Unsealed means that windows (Windows) aren't final, although the piece leaves them out as final.
	Unsealed
	// Fits is the outcome of a check where Apply would return Applied.
	Fits
)

var outcomes = [...]string{"applied", "moved", "held", "refusing", "other schema", "lost", "unlisted", "other bounds", "foreign score", "other rule", "sealed", "unsealed", "fits"}

func (o Outcome) String() string { return outcomes[o] }

// Answer is an outcome and its details.
type Answer struct {
	Outcome Outcome
	Found   string
	Window  string
	// Start and End are in Unix ms. Both are 0 if the window isn't listed or its listing can't be read.
	Start, End int64
	Windows    []string // names in the listing
	Members    []string
	Refused    []Refusal
	// Beyond has, for refused members on boards with other rules than the default one, the field whose
	// range the member would leave.
	Beyond []Beyond
}

// Refusal is a member whose changes in a piece can't be added, and the reason. If one window refuses a
// change, it is added to none, so that an event counts in all of its windows or in none.
type Refusal struct {
	Member string
	Reason Reason
}

// Beyond is the first field found whose range a member would leave.
type Beyond struct {
	Member string
	Window Window // without its bounds
	Field  int    // its number in the board's list, from 1; 0 if the change alone leaves a field's range
	Digit  int64  // the value that the field would have; for a fewest field, its max less that value
}

// Reason is why a member is refused.
type Reason uint8

const (
	// Overflow means that a standing would leave the layout's range of points.
	Overflow Reason = iota + 1
	// WindowLimit means that the change would open a window beyond the limit on listed windows.
	WindowLimit
	// Reasons is one more than the last reason: the size of an array that is indexed by reason.
	Reasons
)

// Verdict is how the caller must handle an error.
type Verdict int

const (
	// Retry means that the error may be temporary: try again with a growing wait.
	Retry Verdict = iota
	// DeadLetter means that this record can't be processed, but others can.
	DeadLetter
	// Halt means that this partition stops and reports the reason until the cause is gone.
	Halt
	// Refuse means that the process can't work at all, and reports what to fix.
	Refuse
)

var verdicts = [...]string{"retry", "dead-letter", "halt", "refuse"}

func (v Verdict) String() string { return verdicts[v] }

// AtStart returns the verdict for an error at start: if Kafka or Redis would never let the process work,
// the process reports that and ends instead of waiting.
func (v Verdict) AtStart() Verdict {
	if v == Halt {
		return Refuse
	}
	return v
}
