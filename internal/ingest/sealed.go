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

// sealedError reports that a piece has changes for windows that are final, or that it omits changes for windows
// that aren't final. Nothing of the piece was written. The worker drops what it has folded. It reads the events
// again without the final windows, so that an event counts in its other windows or is late; or it reads them
// again with the windows that are not final. In a sweep that continues, the sealed window contains the members
// that were swept before the seal, and not the later ones.
//
// A window that was final accepts events again after it was reopened, or if Redis rolls back to before the
// seal. Since the script compares, an event is in a final window if and only if it is before the ledger with
// which the window was sealed:
//
//	this worker                          Redis
//	                                     the window is sealed
//	learns that the window is final
//	folds 480 to 500 without it
//	                                     rolls back to before the seal, to 400
//	reads 400 to 500, without it
//	sends a piece that omits the window  answers that the window isn't final
//	reads 400 to 500, with it
type sealedError struct {
	field   string
	shard   int
	open    bool     // the windows aren't final
	from    int64    // if they are: the shard's events from this offset on come after the seal
	windows []string // by their names in the listing
}

func (e *sealedError) Error() string {
	if e.open {
		return fmt.Sprintf("%s: %s: not final any more", e.field, strings.Join(e.windows, ", "))
	}
	return fmt.Sprintf("%s: %s: final, and nothing counts in it any more", e.field, strings.Join(e.windows, ", "))
}

// allSealedError collects the sealedErrors of several shards. One of them doesn't stop the other shards: a
// window that is final on one shard is usually final on all, and collecting the errors saves one reading per
// shard.
//
// The shards of a sweep run in several goroutines, so take may be called concurrently.
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

// take collects a sealedError, and returns any other error.
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

// join returns the collected errors, or nil if there are none.
func (s *allSealedError) join() error {
	if len(s.all) == 0 {
		return nil
	}
	return s
}

// learn updates known, so that later batches omit exactly the windows that are final. It returns the names of
// the windows that became final and of those that became open, each once.
func (s *allSealedError) learn(known *fold.Sealed) (final, open []string, err error) {
	for _, e := range s.all {
		windows := make([]ledger.Window, len(e.windows))
		for i, name := range e.windows {
			parts := strings.SplitN(name, ":", 3)
			if len(parts) != 3 {
				return nil, nil, fmt.Errorf("%s: Redis reports %q as final or reopened, which is not the name of a window", e.field, name)
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
