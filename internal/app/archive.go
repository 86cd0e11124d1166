package app

// The configured archive.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/reading"
)

// OpenArchive opens the archive; it returns nil if none is configured. The caller must check or migrate the
// schema.
func OpenArchive(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	if cfg.Archive.URL == "" {
		return nil, nil
	}
	return store.Open(ctx, cfg.Archive.URL)
}

// Fenced returns err. If a job's write to the archive was fenced, it adds the archive's token.
func Fenced(ctx context.Context, s *store.Store, err error) error {
	if !errors.Is(err, store.ErrFenced) {
		return err
	}
	token, unknown := s.LargestToken(ctx)
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	return &jobs.FencedError{Floor: token, Err: err}
}

// Archive is the archive for readers. It may be unavailable. The first read opens it and checks its schema;
// after a failure, a read opens it again once openAgain has passed.
type Archive struct {
	cfg *config.Config
	say func(error) // see Say
	// observe: see Observe
	observe func(result string, took time.Duration)

	turn chan struct{} // held by the reader that opens it

	mu     sync.Mutex
	said   bool // say was called
	store  *store.Store
	ready  bool  // its schema was checked
	err    error // why it is not ready
	tried  time.Time
	closed bool
}

// openAgain is the minimum time between a failure and the next attempt to open.
const openAgain = time.Second

// newArchive returns the archive of a configuration; nil if none is configured. It does not open it.
func newArchive(cfg *config.Config) *Archive {
	if cfg.Archive.URL == "" {
		return nil
	}
	return &Archive{cfg: cfg, turn: make(chan struct{}, 1)}
}

// Say sets a function that is called with an error when the archive can no longer be read, and with nil when it
// can. Say must be called before the archive is opened.
func (a *Archive) Say(say func(error)) {
	if a != nil {
		a.say = say
	}
}

// Observe sets a function that is called after every read of a board or a list. Observe must be called before a
// reader is created.
func (a *Archive) Observe(observe func(result string, took time.Duration)) {
	if a != nil {
		a.observe = observe
	}
}

// Open returns the archive once it is open and its schema is this program's. It returns store.ErrEmpty if the
// archive has no schema yet. If another reader is opening it, Open waits for that.
func (a *Archive) Open(ctx context.Context) (*store.Store, error) {
	if s, err, done := a.known(); done {
		return s, err
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s, err, done := a.known(); done {
		return s, err
	}
	a.mu.Lock()
	s := a.store
	a.mu.Unlock()
	var err error
	if s == nil {
		if s, err = store.Open(ctx, a.cfg.Archive.URL); err != nil {
			return nil, a.failed(err)
		}
	}
	a.mu.Lock()
	a.store = s
	closed := a.closed
	a.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("archive %s: %w", s.Name(), context.Canceled)
	}
	if err := s.Check(ctx); err != nil {
		return nil, a.failed(err)
	}
	a.is(nil)
	return s, nil
}

// known returns the present state, if it is known.
func (a *Archive) known() (s *store.Store, err error, done bool) { //nolint:revive // done says whether the two mean anything
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready {
		return a.store, nil, true
	}
	return nil, a.err, a.err != nil && time.Since(a.tried) < openAgain
}

func (a *Archive) failed(err error) error {
	a.is(err)
	return err
}

// is records the result of opening, and reports it if it has changed.
func (a *Archive) is(err error) {
	a.mu.Lock()
	news := !a.said || (err == nil) != (a.err == nil)
	a.err, a.ready, a.tried, a.said = err, err == nil, time.Now(), true
	a.mu.Unlock()
	if a.say != nil && news {
		a.say(err)
	}
}

// Close closes the archive. No reader may use it any more.
func (a *Archive) Close() {
	if a == nil {
		return
	}
	a.turn <- struct{}{} // a reader that opens it finishes first
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed = true; a.store != nil {
		_ = a.store.Close() // nothing can be done about an error here
	}
	a.ready, a.store = false, nil
	a.err, a.tried = context.Canceled, time.Now().Add(time.Hour)
	<-a.turn
}

// reading returns the archive for a reader of boards, with the maximum number of concurrent reads.
func (a *Archive) reading(cfg *config.Config, reads int) *reading.Archive {
	if a == nil {
		return nil
	}
	return &reading.Archive{Open: a.Open, Timeout: cfg.API.Timeout, Reads: reads, Observe: a.observe}
}
