// Package live is what many clients watch, read once for all of them.
//
//	client ─▶ Watch ─┐
//	client ─▶ Watch ─┼─▶ source ─▶ Read, once an interval
//	client ─▶ Watch ─┘     │
//	                       └─ versions: the latest, and those that clients may have
//
// A source is read as long as somebody watches it. What it shows is a version: another one begins
// when a row is another, or, at most once a second, what is shown beside the rows. A client is not
// sent every version. It takes the latest when it can, as the difference from the version that it
// has; so whoever is slow has no queue, and misses nothing but what was replaced meanwhile. A
// difference is encoded once, whoever takes it.
//
// A client that has a version which isn't kept any more takes a snapshot. So do all of them where
// the rows are of something else, such as the next window, and after a problem.
package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// State is what is shown at a moment, in pieces of JSON.
type State struct {
	// Of is what the rows are of: between rows of two things there is no difference.
	Of string
	// Beside is what of the rest makes a version when it changes.
	Beside string
	// Snapshot and Change are the members of the events' objects but for the rows: "a":1,"b":2.
	Snapshot, Change []byte
	Rows             []Row // each of another member. They aren't changed any more
}

// Row is a row, as JSON.
type Row struct {
	Member string
	Text   []byte
}

// Read reads a state. It ends soon after its context.
type Read func(context.Context) (State, error)

// Config is what a Hub is made of. Every field is set.
type Config struct {
	// Sources is how many there are at a time. A client may begin one while it has begun fewer than
	// are free.
	Sources int
	// Problem is the data of an event that says why a source can't be read: JSON, in a line.
	Problem func(error) []byte
	// Counted is called after every read.
	Counted func()
}

const (
	// slowest is how often a source is read at least.
	slowest = time.Second
	// share is the time between two reads over all sources: where there are many, each is read less
	// often, so that Redis has to answer no more than a thousand reads a second.
	share = time.Millisecond
)

var (
	// ErrFull says that there are as many sources as there may be.
	ErrFull = errors.New("limit of watched boards reached")
	// ErrClient says that the client has begun as many as one client may.
	ErrClient = errors.New("limit of watched boards per client reached")
	// ErrEnded says that the hub has ended.
	ErrEnded = errors.New("no longer watching")
)

// Hub has the sources. It is safe for concurrent use.
type Hub struct {
	Config
	ctx     context.Context //nolint:containedctx // of the reads: until End
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	sources map[any]*source
	begun   map[string]int // how many of the sources each client has begun
}

// New makes a hub. End ends it.
func New(c Config) *Hub {
	h := &Hub{Config: c, sources: map[any]*source{}, begun: map[string]int{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Watch watches what a key stands for, which the first to come begins to read. A read begins at
// most `every` after the one before has ended, unless there are many sources. Leave is to be called
// at the end. Errors are ErrFull, ErrClient and ErrEnded.
func (h *Hub) Watch(key any, client string, every time.Duration, read Read) (*Watch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil, ErrEnded
	}
	s := h.sources[key]
	if s == nil {
		switch {
		case len(h.sources) >= h.Sources:
			return nil, ErrFull
		case h.begun[client] >= h.Sources-len(h.sources):
			return nil, ErrClient
		}
		s = &source{
			hub: h, key: key, client: client, read: read, paces: map[time.Duration]int{}, sooner: make(chan struct{}, 1),
			epoch: strconv.FormatUint(rand.Uint64(), 36), news: make(chan struct{}),
		}
		var ctx context.Context
		ctx, s.end = context.WithCancel(h.ctx)
		h.sources[key] = s
		h.begun[client]++
		h.running.Go(func() { s.run(ctx) })
	}
	if s.paces[every]++; s.paces[every] == 1 {
		select {
		case s.sooner <- struct{}{}: // it may be waiting for longer
		default:
		}
	}
	return &Watch{source: s, every: every}, nil
}

// leave ends the source with its last client.
func (h *Hub) leave(s *source, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.paces[every]--; s.paces[every] == 0 {
		delete(s.paces, every)
	}
	if len(s.paces) > 0 {
		return
	}
	s.end()
	delete(h.sources, s.key)
	if h.begun[s.client]--; h.begun[s.client] == 0 {
		delete(h.begun, s.client)
	}
}

// pause is how long a source waits for its next read.
func (h *Hub) pause(s *source) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	least := slowest
	for every := range s.paces {
		least = min(least, every)
	}
	return max(least, time.Duration(len(h.sources))*share)
}

// Len is how many sources there are.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sources)
}

// Done is closed once the hub has ended: whoever watches leaves.
func (h *Hub) Done() <-chan struct{} { return h.ctx.Done() }

// End ends the hub, and all reads.
func (h *Hub) End() {
	h.mu.Lock() // a source that begins has begun before, or doesn't
	defer h.mu.Unlock()
	h.end()
}

// Wait waits for the reads that were under way at the end.
func (h *Hub) Wait() { h.running.Wait() }
