package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

// sealedError says that a piece has changes for windows that are final: nothing of it was written.
// What was folded for them is dropped with all the rest, and read again without: an event counts in
// its other windows, or is late. In a sweep that goes on, who was swept before the window was sealed
// is in it, and who comes after isn't.
type sealedError struct {
	field   string
	shard   int
	from    int64    // every event of the shard's from here on comes after the seal
	windows []string // by their names in the listing
}

func (e *sealedError) Error() string {
	return fmt.Sprintf("%s: %s: final, and nothing counts in it any more", e.field, strings.Join(e.windows, ", "))
}

// allSealedError has those of several shards. One doesn't stop the others: mostly a window that is final
// on one is so on all, and what is learned at once isn't found out by one reading a shard.
//
// The shards of a sweep are one goroutine's each: take may be called by several.
type allSealedError struct {
	mu  sync.Mutex
	all []*sealedError
}

func (s *allSealedError) Error() string {
	var each []string
	for _, e := range s.all {
		each = append(each, e.Error())
	}
	return strings.Join(each, "; ")
}

// take keeps an error that is one of them, and returns any other.
func (s *allSealedError) take(err error) error {
	sealed, ok := errors.AsType[*sealedError](err)
	if !ok {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, sealed)
	return nil
}

// join is nil where there are none.
func (s *allSealedError) join() error {
	if len(s.all) == 0 {
		return nil
	}
	return s
}

// learn has batches from now on leave the windows out, and returns their names, each once.
func (s *allSealedError) learn(known *fold.Sealed) ([]string, error) {
	var names []string
	for _, e := range s.all {
		windows := make([]ledger.Window, len(e.windows))
		for i, name := range e.windows {
			parts := strings.SplitN(name, ":", 3)
			if len(parts) != 3 {
				return nil, fmt.Errorf("%s: %q is said to be final, and is no window", e.field, name)
			}
			windows[i] = ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}
		}
		known.Add(e.shard, e.from, windows...)
		names = append(names, e.windows...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
