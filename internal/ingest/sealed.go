package ingest

import (
	"fmt"
	"strings"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

// sealedError says that a piece has changes for windows that are final: nothing of it was written.
// What was folded for them is dropped with all the rest, and read again without: an event counts in
// its other windows, or is late. In a sweep that goes on, who was swept before the window was sealed
// is in it, and who comes after isn't.
type sealedError struct {
	field   string
	from    int64    // every event from here on comes after the seal
	windows []string // by their names in the listing
}

func (e *sealedError) Error() string {
	return fmt.Sprintf("%s: %s: final, and nothing counts in it any more", e.field, strings.Join(e.windows, ", "))
}

// learn has batches from now on leave the windows out, and returns their names.
func (e *sealedError) learn(all *fold.Sealed) ([]string, error) {
	windows := make([]ledger.Window, len(e.windows))
	for i, name := range e.windows {
		parts := strings.SplitN(name, ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s: %q is said to be final, and is no window", e.field, name)
		}
		windows[i] = ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}
	}
	all.Add(e.from, windows...)
	return e.windows, nil
}
