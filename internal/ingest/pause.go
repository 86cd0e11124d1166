package ingest

import (
	"context"
	"sync"
	"time"
)

// Pause stops a consumer between two batches, with all shards of a partition at the same offset, so that a
// reshard can copy their contents. It is safe for concurrent use. A nil Pause never pauses.
type Pause struct {
	mu    sync.Mutex
	why   error
	ended chan struct{} // nil: no pause is in progress
}

// Begin pauses the partitions, each as soon as it is between two batches. Their status reports why.
func (p *Pause) Begin(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why = why; p.ended == nil {
		p.ended = make(chan struct{})
	}
}

// End ends the pause.
func (p *Pause) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		close(p.ended)
	}
	p.ended = nil
}

// underWay returns a channel that is closed when the pause ends, or nil if there is no pause, and the pause's
// reason.
func (p *Pause) underWay() (ended <-chan struct{}, why error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended, p.why
}

// paused waits while there is a pause. A partition first continues until its shards are level, so that it
// finishes a sweep that it has taken over. It compares its ledgers while it waits.
func (s *sweeper) paused(ctx context.Context, look <-chan time.Time) error {
	for waited := false; ; waited = true {
		ended, why := s.pause.underWay()
		if ended == nil || !s.level() {
			if waited {
				s.status.Writing(nil)
			}
			return nil
		}
		if err := s.compare(ctx); err != nil { // moves lagging ledgers
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
