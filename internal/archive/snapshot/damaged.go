package snapshot

import (
	"errors"
	"fmt"
)

// ErrDamaged is what a *DamagedError is.
var ErrDamaged = errors.New("the snapshot is damaged")

// DamagedError says what is wrong with a file, and where.
type DamagedError struct {
	File string // empty where it was read from elsewhere
	At   int64  // bytes into the file, where the block begins
	What string
}

func (e *DamagedError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("%v: at byte %d: %s", ErrDamaged, e.At, e.What)
	}
	return fmt.Sprintf("%v: %s, at byte %d: %s", ErrDamaged, e.File, e.At, e.What)
}

func (e *DamagedError) Unwrap() error { return ErrDamaged }
