package ranking

// Events that are missing in a reopened window: they came while it was final.

import "time"

// Passed are events that a window lacks although the ledger counts them: the ledger of the instant To
// counts them, and that of From doesn't (SealLedgers). A rebuild adds them to the window.
type Passed struct {
	From time.Time // when the window was sealed
	To   time.Time // when it was reopened
}

// Unsaid returns the Passed for unknown events (Seal.Unknown): no ledger has the instant 0.
func Unsaid(until time.Time) Passed { return Passed{time.UnixMicro(0), until} }
