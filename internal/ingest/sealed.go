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

// sealedError says that a piece has changes for windows that are final, or that it leaves windows out that
// aren't: nothing of it was written. What was folded is dropped, and read again without these windows, so
// that an event counts in its other ones, or is late; or with them. In a sweep that goes on, who was swept
// before the window was sealed is in it, and who comes after isn't.
//
// Windows that were final take events again once they are reopened, and where Redis goes back to before the
// seal. Since the script compares, an event is in a final window if and only if the ledger has it that the
// window was sealed by:
//
//	this worker                          Redis
//	                                     the window is sealed
//	learns that it is final
//	folds 480 to 500 without it
//	                                     goes back to before the seal, and to 400
//	reads 400 to 500, without it
//	sends a piece, which says so         answers that it isn't final
//	reads 400 to 500, with it
type sealedError struct {
	field   string
	shard   int
	open    bool     // they aren't final
	from    int64    // else every event of the shard's from here on comes after the seal
	windows []string // by their names in the listing
}

func (e *sealedError) Error() string {
	if e.open {
		return fmt.Sprintf("%s: %s: not final any more", e.field, strings.Join(e.windows, ", "))
	}
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

// learn has batches from now on leave out the windows that are final, and no others, and returns the names
// of both, each once.
func (s *allSealedError) learn(known *fold.Sealed) (final, open []string, err error) {
	for _, e := range s.all {
		windows := make([]ledger.Window, len(e.windows))
		for i, name := range e.windows {
			parts := strings.SplitN(name, ":", 3)
			if len(parts) != 3 {
				return nil, nil, fmt.Errorf("%s: %q is said to be final or not, and is no window", e.field, name)
			}
			windows[i] = ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}
		}
		if e.open {
			known.Remove(e.shard, windows...)
			open = append(open, e.windows...)
			continue
		}
		known.Add(e.shard, e.from, windows...)
		final = append(final, e.windows...)
	}
	slices.Sort(final)
	slices.Sort(open)
	return slices.Compact(final), slices.Compact(open), nil
}
