package reading

// Windows that Redis doesn't have any more are read from the archive. Redis is asked first, always:
// what it lists, or has lost, is its own to answer, and never waits for the archive.
//
// An archive that is away, or slow, holds up nobody else: who reads it is few, who waits for that as
// few again, and the next are refused at once; once it has kept somebody waiting in vain, nobody asks
// for a moment.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/standings/standings/internal/archive/store"
)

// Archive is what windows are read from that Redis doesn't list.
type Archive struct {
	// Open returns the archive, whose schema is this program's: it may be away, and is called before
	// every read. ErrEmpty of the store is one in which there is nothing.
	Open func(context.Context) (*store.Store, error)
	// Timeout is how long a read may take.
	Timeout time.Duration
	// Reads is how many there are at a time; as many wait.
	Reads int
	// Observe, where there is one, is called after each read, with what came of it and how long it took, with
	// what it waited for others.
	Observe func(result string, took time.Duration)
}

// What comes of a read of the archive.
const (
	ReadFound     = "found"
	ReadNotFound  = "not_found"
	ReadFailed    = "failed"    // it is away, or couldn't answer
	ReadSlow      = "slow"      // it didn't answer in time
	ReadRefused   = "refused"   // as many read it, and wait, as may
	ReadAbandoned = "abandoned" // who asked has gone
)

// ReadResults are all of them.
func ReadResults() []string {
	return []string{ReadFound, ReadNotFound, ReadFailed, ReadSlow, ReadRefused, ReadAbandoned}
}

// ArchiveError says that a window which Redis doesn't have may be in the archive, and that this
// can't be read.
type ArchiveError struct{ Err error }

func (e *ArchiveError) Error() string { return "read the archive: " + e.Err.Error() }

// Unwrap is why.
func (e *ArchiveError) Unwrap() error { return e.Err }

// Errors that an ArchiveError has.
var (
	// ErrArchiveBusy: as many read it, and wait, as may.
	ErrArchiveBusy = errors.New("too many concurrent readers")
	errSlow        = errors.New("no reply in time")
)

const (
	// missingFor is how long it is remembered that the archive doesn't have a window, so that a flood of
	// requests for one that is nowhere isn't one of queries. A copy that is made meanwhile is of a
	// window that Redis still has, as a rule.
	missingFor = time.Second
	// Of a window that isn't over, and that Redis doesn't list, the archive has a backup at most, where Redis
	// was lost: it isn't waited for longer than liveLimit, nor asked again within liveMissingFor.
	liveLimit      = time.Second
	liveMissingFor = 10 * time.Second
	// mostMissing is how many windows that is remembered of.
	mostMissing = 4096
	// awayFor is how long nobody asks an archive that has kept somebody waiting in vain.
	awayFor = time.Second
)

// archive is an Archive, and what is known of it.
type archive struct {
	Archive
	room chan struct{} // one for each who reads

	mu        sync.Mutex
	inside    int // who read or wait
	missing   map[string]time.Time
	away      error // and until when
	until     time.Time
	kept      keptBoards
	unshownOf map[int64]*unshownOf // by the copy's id
}

func newArchive(a *Archive) *archive {
	if a == nil {
		return nil
	}
	return &archive{Archive: *a, room: make(chan struct{}, max(1, a.Reads)), missing: map[string]time.Time{}, unshownOf: map[int64]*unshownOf{}}
}

// enter waits for room, and returns what gives it back.
func (a *archive) enter(ctx context.Context) (leave func(), err error) {
	if err := a.comeIn(); err != nil {
		return nil, err
	}
	select {
	case a.room <- struct{}{}:
		return func() { <-a.room; a.goOut() }, nil
	case <-ctx.Done():
		a.goOut()
		return nil, ErrArchiveBusy
	}
}

func (a *archive) comeIn() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.until) {
		return a.away
	}
	if a.inside >= 2*cap(a.room) {
		return ErrArchiveBusy
	}
	a.inside++
	return nil
}

func (a *archive) goOut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inside--
}

// use calls do with the archive, within the time that a read has, or less. What goes wrong is an
// *ArchiveError, but that there is no such thing, and what the one who reads has ended.
func (a *archive) use(ctx context.Context, limit time.Duration, do func(context.Context, *store.Store) error) (result error) {
	began := time.Now()
	defer func() { a.observe(ctx, result, time.Since(began)) }()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	leave, err := a.enter(limited)
	if err == nil {
		defer leave()
		var s *store.Store
		if s, err = a.Open(limited); err == nil {
			err = do(limited, s)
		} else if errors.Is(err, store.ErrEmpty) {
			err = store.ErrNotFound
		}
	}
	var asked *askedError
	switch {
	case err == nil || errors.Is(err, store.ErrNotFound):
		return err
	case errors.As(err, &asked):
		return asked.error
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	}
	if limited.Err() != nil {
		// What it says itself of that depends on the driver.
		err = fmt.Errorf("%w, within %v: %w", errSlow, limit, err)
		if time.Since(began) >= a.Timeout/2 {
			a.isAway(err)
		}
	}
	return &ArchiveError{err}
}

func (a *archive) observe(ctx context.Context, err error, took time.Duration) {
	if a.Observe == nil {
		return
	}
	result := ReadFound // also where what was asked for can't be
	switch {
	case errors.Is(err, store.ErrNotFound):
		result = ReadNotFound
	case errors.Is(ctx.Err(), context.Canceled):
		result = ReadAbandoned
	case errors.Is(err, ErrArchiveBusy):
		result = ReadRefused
	case errors.Is(err, errSlow):
		result = ReadSlow
	case archiveFailed(err):
		result = ReadFailed
	}
	a.Observe(result, took)
}

func (a *archive) isAway(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away, a.until = err, time.Now().Add(awayFor)
}

// askedError is one of what was asked, and not of the archive.
type askedError struct{ error }

func (e *askedError) Unwrap() error { return e.error }

// isMissing reports whether the archive didn't have a window a moment ago.
func (a *archive) isMissing(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.missing[name]
	if ok && time.Now().After(until) {
		delete(a.missing, name)
		return false
	}
	return ok
}

func (a *archive) miss(name string, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.missing) >= mostMissing {
		clear(a.missing)
	}
	a.missing[name] = time.Now().Add(d)
}

// ErrOtherCopy says that what is read page by page isn't the same any more: Redis has dropped the
// window, or the archive has another copy of it.
var ErrOtherCopy = errors.New("the window was dropped or archived again while it was read: read it again")

// SameCopy is ErrOtherCopy where two pages aren't of the same copy. Pages of a window in Redis are of
// different moments, which is what they say.
func SameCopy(a, b *View) error {
	if a.Archived != b.Archived || a.Archived && (a.Revision != b.Revision || !a.AsOf.Equal(b.AsOf)) || a.Listed && !b.Listed {
		return fmt.Errorf("%s %s %s: %w", b.Name, b.Window.Period, b.Window.Name, ErrOtherCopy)
	}
	return nil
}
