package app

// The archive of a configuration.

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

// OpenArchive opens the archive; nil where none is configured. Its schema is the caller's to check,
// or to migrate.
func OpenArchive(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	if cfg.Archive.URL == "" {
		return nil, nil
	}
	return store.Open(ctx, cfg.Archive.URL)
}

// Fenced returns err; of a job whose write to the archive was fenced, with the token that the archive has.
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

// Archive is the archive for who reads it, which may be away: it is opened, and its schema checked,
// once it is read, and again a while after that has failed.
type Archive struct {
	cfg *config.Config
	say func(error) // see Say
	// observe: see Observe
	observe func(result string, took time.Duration)

	turn chan struct{} // one place: who opens it

	mu     sync.Mutex
	said   bool // whether anything was
	store  *store.Store
	ready  bool  // its schema was this program's
	err    error // why not
	tried  time.Time
	closed bool
}

// openAgain is how long after a failure it is opened again.
const openAgain = time.Second

// newArchive is the archive of a configuration; nil where none is configured. It opens nothing yet.
func newArchive(cfg *config.Config) *Archive {
	if cfg.Archive.URL == "" {
		return nil
	}
	return &Archive{cfg: cfg, turn: make(chan struct{}, 1)}
}

// Say has a function called when the archive can't be read any more, with why, and with nil when it
// can: before it is opened.
func (a *Archive) Say(say func(error)) {
	if a != nil {
		a.say = say
	}
}

// Observe has a function called after every read of a board or a list: before a reader is made.
func (a *Archive) Observe(observe func(result string, took time.Duration)) {
	if a != nil {
		a.observe = observe
	}
}

// Open returns the archive once it is open and of this program's schema: store.ErrEmpty of one that
// has none yet. Who comes while another opens it waits for that.
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

// known is what is known of it already.
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

// is notes what became of opening it, and says that where it is news.
func (a *Archive) is(err error) {
	a.mu.Lock()
	news := !a.said || (err == nil) != (a.err == nil)
	a.err, a.ready, a.tried, a.said = err, err == nil, time.Now(), true
	a.mu.Unlock()
	if a.say != nil && news {
		a.say(err)
	}
}

// Close closes it: nobody reads it any more.
func (a *Archive) Close() {
	if a == nil {
		return
	}
	a.turn <- struct{}{} // whoever opens it does that first
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed = true; a.store != nil {
		_ = a.store.Close() // there is nothing to do about a connection that ends badly
	}
	a.ready, a.store = false, nil
	a.err, a.tried = context.Canceled, time.Now().Add(time.Hour)
	<-a.turn
}

// reading is the archive for a reader of boards, so many at a time.
func (a *Archive) reading(cfg *config.Config, reads int) *reading.Archive {
	if a == nil {
		return nil
	}
	return &reading.Archive{Open: a.Open, Timeout: cfg.API.Timeout, Reads: reads, Observe: a.observe}
}
