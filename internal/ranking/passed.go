package ranking

// Events that passed a window by: they came while it was final, and it was reopened since.

import "time"

// Passed are events that aren't in a window although the ledger counts them: those that the ledger of the
// instant To has, and that of From hasn't (SealLedgers). A rebuild brings them in.
type Passed struct {
	From time.Time // a seal
	To   time.Time // when it was taken back
}

// Unsaid are events of which nothing says which they are (Seal.Unknown): no ledger is of the instant 0.
func Unsaid(until time.Time) Passed { return Passed{time.UnixMicro(0), until} }
