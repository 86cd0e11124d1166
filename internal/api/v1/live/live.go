// Package live lets many clients watch the same state, and reads it once for all of them.
//
//	client ─▶ Watch ─┐
//	client ─▶ Watch ─┼─▶ source ─▶ Read, once an interval
//	client ─▶ Watch ─┘     │
//	                       └─ versions: the latest, and those that clients may have
//
// A source is read while at least one client watches it. Its state has numbered versions. A new version begins
// when a row changes or, at most once a second, when the values outside the rows change. A client does not receive
// every version. When it is ready it takes the latest, as the difference from the version that it has. So a slow
// client has no queue, and misses only versions that newer ones have replaced. Each difference is encoded once for
// all clients.
//
// A client takes a snapshot if the source no longer keeps its version. All clients take one after a problem, or if
// the rows are of something else, such as the next window.
package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// State is the state at one instant, in pieces of JSON.
type State struct {
	// Of identifies what the rows are of. If it changes, clients take a snapshot instead of a difference.
	Of string
	// Beside holds the values outside the rows whose change begins a new version.
	Beside string
	// Snapshot and Change are the events' JSON members other than the rows: "a":1,"b":2.
	Snapshot, Change []byte
	Rows             []Row // at most one per member; not modified any more
}

// Row is a row as JSON.
type Row struct {
	Member string
	Text   []byte
}

// Read reads the state. It must return soon after its context ends.
type Read func(context.Context) (State, error)

// Config is the configuration of a Hub. All fields are required.
type Config struct {
	// Sources is the maximum number of sources. A client may start one only while it has started fewer than are
	// free.
	Sources int
	// Problem returns the data of an event that reports why a source cannot be read: JSON, on one line.
	Problem func(error) []byte
	// Counted is called after every read.
	Counted func()
}

const (
	// slowest is the longest pause between two reads of a source.
	slowest = time.Second
	// share is the minimum time per source between reads: with many sources, each is read less often, so that
	// Redis serves at most a thousand reads a second for streams.
	share = time.Millisecond
)

var (
	// ErrFull reports that the maximum number of sources is reached.
	ErrFull = errors.New("limit of watched boards reached")
	// ErrClient reports that the client has started as many sources as one client may.
	ErrClient = errors.New("limit of watched boards per client reached")
	// ErrEnded reports that the hub has ended.
	ErrEnded = errors.New("no longer watching")
)

// Hub holds the sources. It is safe for concurrent use.
type Hub struct {
	Config
	ctx     context.Context //nolint:containedctx // of the reads: until End
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	sources map[any]*source
	begun   map[string]int // the number of sources that each client has started
}

// New returns a hub. End ends it.
func New(c Config) *Hub {
	h := &Hub{Config: c, sources: map[any]*source{}, begun: map[string]int{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Watch watches the state that key identifies. The first Watch of a key starts its source, which calls read. The
// source pauses for at most `every` between two reads, unless there are many sources. The caller must call Leave
// at the end. The errors are ErrFull, ErrClient and ErrEnded.
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
		case s.sooner <- struct{}{}: // the source may be in a longer pause
		default:
		}
	}
	return &Watch{source: s, every: every}, nil
}

// leave ends the source if this was its last client.
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

// pause returns how long a source waits before its next read.
func (h *Hub) pause(s *source) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	least := slowest
	for every := range s.paces {
		least = min(least, every)
	}
	return max(least, time.Duration(len(h.sources))*share)
}

// Len returns the number of sources.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sources)
}

// Done is closed once the hub has ended; its clients must then leave.
func (h *Hub) Done() <-chan struct{} { return h.ctx.Done() }

// End ends the hub and cancels all reads.
func (h *Hub) End() {
	h.mu.Lock() // so that Watch either starts a source before the end, or returns ErrEnded
	defer h.mu.Unlock()
	h.end()
}

// Wait waits, after End, for the reads in progress.
func (h *Hub) Wait() { h.running.Wait() }
