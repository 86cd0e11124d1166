package ledger

// FullError says that the standings have no room: nothing was written. Room may be made, so
// it passes; but it doesn't by itself.
type FullError struct {
	Used, Max int64 // bytes; 0 where it isn't known
	Err       error
}

func (e *FullError) Error() string { return e.Err.Error() }

func (e *FullError) Unwrap() error { return e.Err }
