package ingest

import (
	"context"
	"sync"
	"time"
)

// Pause stops a consumer between two batches, with all shards of a partition at the same
// offset: what is copied then can be cut into other shards. It is safe for concurrent use; none,
// nil, is never under way.
type Pause struct {
	mu    sync.Mutex
	why   error
	ended chan struct{} // nil: none is under way
}

// Begin has the partitions pause, each once it is between two batches. They wait for why.
func (p *Pause) Begin(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why = why; p.ended == nil {
		p.ended = make(chan struct{})
	}
}

// End lets them go on.
func (p *Pause) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		close(p.ended)
	}
	p.ended = nil
}

// underWay is what is closed when it ends, nil if there is none, and why it is.
func (p *Pause) underWay() (ended <-chan struct{}, why error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended, p.why
}

// paused waits while there is a pause. A partition goes on until its shards are level, so that
// a sweep that is taken over is finished first, and looks at its ledgers while it waits.
func (s *sweeper) paused(ctx context.Context, look <-chan time.Time) error {
	for waited := false; ; waited = true {
		ended, why := s.pause.underWay()
		if ended == nil || !s.level() {
			if waited {
				s.status.Writing(nil)
			}
			return nil
		}
		if err := s.compare(ctx); err != nil { // moves those that lag
			return err
		}
		s.status.Writing(why)
		select {
		case <-ended:
		case <-look:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// level reports whether the same events count in all shards.
func (s *sweeper) level() bool {
	for _, l := range s.lanes {
		if l.at.Sweeping() || l.counted() != s.lanes[0].counted() {
			return false
		}
	}
	return true
}
