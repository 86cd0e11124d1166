package ledger

// FullError reports that Redis has no memory for the standings; nothing was written. It can be retried, but
// an operator must free memory.
type FullError struct {
	Used, Max int64 // bytes; 0 if unknown
	Err       error
}

func (e *FullError) Error() string { return e.Err.Error() }

func (e *FullError) Unwrap() error { return e.Err }
