package reading

// Windows that Redis no longer has are read from the archive. The reader always reads Redis first. It answers from
// Redis alone, without waiting for the archive, if Redis lists the window or has lost it.
//
// An unavailable or slow archive delays few requests. Archive.Reads limits the concurrent reads; as many requests
// may wait, and further ones are refused at once. After a read has timed out, all reads fail at once for a moment.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/standings/standings/internal/archive/store"
)

// Archive configures the archive for windows that Redis does not list.
type Archive struct {
	// Open returns the archive, with this program's schema. It is called before every read and may fail.
	// store.ErrEmpty means that the archive is empty.
	Open func(context.Context) (*store.Store, error)
	// Timeout is the maximum duration of a read.
	Timeout time.Duration
	// Reads is the maximum number of concurrent reads; as many more may wait.
	Reads int
	// Observe, if set, is called after each read with its result and its duration, which includes the wait for
	// other reads.
	Observe func(result string, took time.Duration)
}

// Results of a read of the archive.
const (
	ReadFound     = "found"
	ReadNotFound  = "not_found"
	ReadFailed    = "failed"    // the archive is unavailable or returned an error
	ReadSlow      = "slow"      // the archive did not reply in time
	ReadRefused   = "refused"   // too many others read or wait
	ReadAbandoned = "abandoned" // the caller has cancelled the read
)

// ReadResults returns all results.
func ReadResults() []string {
	return []string{ReadFound, ReadNotFound, ReadFailed, ReadSlow, ReadRefused, ReadAbandoned}
}

// ArchiveError reports that the archive could not be read. It may have the window that Redis does not list.
type ArchiveError struct{ Err error }

func (e *ArchiveError) Error() string { return "read the archive: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ArchiveError) Unwrap() error { return e.Err }

// Causes of an ArchiveError.
var (
	// ErrArchiveBusy reports that too many others read or wait.
	ErrArchiveBusy = errors.New("too many concurrent readers")
	errSlow        = errors.New("no reply in time")
)

const (
	// missingFor is how long the reader remembers that the archive does not have a window, so that many requests
	// for a missing window do not cause as many queries. A window archived in the meantime is normally still in
	// Redis.
	missingFor = time.Second
	// If a window is not over and Redis does not list it, the archive can only have a backup of it, from before a
	// loss of Redis. The reader waits for this at most liveLimit, and does not query again within liveMissingFor.
	liveLimit      = time.Second
	liveMissingFor = 10 * time.Second
	// mostMissing is the maximum number of windows remembered as missing.
	mostMissing = 4096
	// awayFor is how long all reads fail at once after a read has timed out.
	awayFor = time.Second
)

// archive is an Archive and its state.
type archive struct {
	Archive
	room chan struct{} // holds a token per concurrent read

	mu        sync.Mutex
	inside    int // number of readers that read or wait
	missing   map[string]time.Time
	away      error // the error returned until the time in until
	until     time.Time
	kept      keptBoards
	unshownOf map[int64]*unshownOf // keyed by the copy's id
}

func newArchive(a *Archive) *archive {
	if a == nil {
		return nil
	}
	return &archive{Archive: *a, room: make(chan struct{}, max(1, a.Reads)), missing: map[string]time.Time{}, unshownOf: map[int64]*unshownOf{}}
}

// enter waits for a place to read. The caller must call leave at the end.
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

// use calls do with the archive, within limit. If the archive cannot be read, the error is an *ArchiveError. A
// missing window (store.ErrNotFound), an invalid request and the caller's cancellation are returned as they are.
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
		// The store's own error on a timeout depends on the driver.
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
	result := ReadFound // also if the request was invalid
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

// askedError is an error of the request and not of the archive.
type askedError struct{ error }

func (e *askedError) Unwrap() error { return e.error }

// isMissing reports whether the archive lacked a window at a recent read.
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

// ErrOtherCopy reports that the pages read are not of the same data: Redis has dropped the window, or the archive
// has a newer copy of it.
var ErrOtherCopy = errors.New("the window was dropped or archived again while it was read: read it again")

// SameCopy returns ErrOtherCopy if two pages are of different copies. Pages of a window in Redis may differ in
// time; each states its own.
func SameCopy(a, b *View) error {
	if a.Archived != b.Archived || a.Archived && (a.Revision != b.Revision || !a.AsOf.Equal(b.AsOf)) || a.Listed && !b.Listed {
		return fmt.Errorf("%s %s %s: %w", b.Name, b.Window.Period, b.Window.Name, ErrOtherCopy)
	}
	return nil
}
