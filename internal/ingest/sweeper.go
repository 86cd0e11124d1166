package ingest

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// sweeper applies a partition's batches to all shards concurrently. It runs in its worker's goroutine.
//
// The next batch begins only when every shard has applied the current one. So an unavailable shard stops all
// shards, and no more memory is held meanwhile than with one shard.
type sweeper struct {
	*source.Handle
	lanes       []*lane
	calls       *calls // shared by all lanes
	batches     *handoff
	refuser     *refuser
	commits     *commits.Pending
	status      *health.Status
	lag         *health.LagTracker
	stats       *counts.Stats
	reconnected *atomic.Int64 // counts new connections to the standings
	exact       bool          // every shard is moved to the end of every batch
	pause       *Pause

	trail   trail.Trail   // as far as the sweeper has swept, or further
	tallied *atomic.Int64 // see carried
	taken   atomic.Int64  // events in the sweep's pieces so far: already counted as consumed
}

// lastCall is how long the sweeper waits for a piece in flight at the end of a generation.
const lastCall = 3 * time.Second

// outlive returns a context that ends a given time after another.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// lookEvery is how often an idle worker compares its ledgers, so that it notices a Redis rollback even without
// new events.
const lookEvery = time.Second

// run sweeps batches until ctx ends or a ledger has moved. It stops between two pieces, never within one.
func (s *sweeper) run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	calls, cancel := outlive(ctx, lastCall)
	defer cancel()
	defer s.moveLagging(ctx) // before the context of the calls ends
	s.calls.ctx = calls
	connections := s.reconnected.Load()
	for ctx.Err() == nil {
		err := s.paused(ctx, look.C)
		if err == nil {
			err = s.next(ctx, look.C)
		}
		if err == nil && s.reconnected.Load() != connections {
			// The new connection may lead to another Redis.
			connections = s.reconnected.Load()
			err = s.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// next waits for a batch or another task, and handles it. A due look goes first: otherwise, with an endless
// supply of batches, select could delay it indefinitely.
func (s *sweeper) next(ctx context.Context, look <-chan time.Time) error {
	select {
	case <-look:
		return s.look(ctx)
	default:
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case b := <-s.batches.slot:
		return s.sweep(ctx, b)
	case b := <-s.batches.closed:
		return s.sweep(ctx, b)
	case swept := <-s.batches.quiet:
		defer close(swept)
		if b := s.batches.open(); b != nil {
			return s.sweep(ctx, b)
		}
		return nil
	case <-look:
		return s.look(ctx)
	}
}

// look verifies the ledgers when the sweeper is idle, and at intervals between batches.
func (s *sweeper) look(ctx context.Context) error {
	if err := s.compare(ctx); err != nil {
		return err
	}
	s.status.Looked()
	return nil
}

// compare compares every ledger with its expected position, and moves those that lag.
func (s *sweeper) compare(ctx context.Context) error {
	lagged := s.lags()
	if err := s.each(ctx, s.lanes, func(ctx context.Context, l *lane) error { return l.look(ctx) }); err != nil {
		return err
	}
	if at := s.positions(); !at.Sweeping() && s.commits != nil {
		if lagged {
			s.commits.At(s.Topic, s.Number, at.Lowest(), s.trail)
		} else {
			s.commits.Still(s.Topic, s.Number, at.Lowest(), s.trail)
		}
	}
	return nil
}

// moveLagging moves lagging shards when a generation ends, so that the next owner has little to read again. It
// tries once.
func (s *sweeper) moveLagging(ctx context.Context) {
	if ctx.Err() == nil || !s.lags() {
		return
	}
	_ = s.each(ctx, s.lanes, func(ctx context.Context, l *lane) error {
		if !l.lags() {
			return nil
		}
		return l.move(ctx)
	})
	s.commits.At(s.Topic, s.Number, s.positions().Lowest(), s.trail)
}

// lags reports whether any shard lags.
func (s *sweeper) lags() bool {
	for _, l := range s.lanes {
		if l.lags() {
			return true
		}
	}
	return false
}

// counted returns the offset before which every event counts in every shard.
func (s *sweeper) counted() int64 {
	counted := s.lanes[0].counted()
	for _, l := range s.lanes[1:] {
		counted = min(counted, l.counted())
	}
	return counted
}

// positions returns the positions of the shards.
func (s *sweeper) positions() ledger.Positions {
	all := make(ledger.Positions, len(s.lanes))
	for i, l := range s.lanes {
		all[i] = l.at
	}
	return all
}

// sweep applies a batch. Its events without a member are counted with the last piece, since another owner may
// take over and count them before that.
func (s *sweeper) sweep(ctx context.Context, b *batch) error {
	defer s.batches.recycle(b)
	s.lag.Sweeping(b.oldest)
	s.trail = b.trail // the trail of what was read, even if it doesn't count in the end
	if !b.Resumed() {
		s.taken.Store(0)
	}
	lanes := s.lanes[:0:0]
	for _, l := range s.lanes {
		if l.takes(b, s.exact || b.exact || len(s.lanes) == 1) {
			lanes = append(lanes, l)
		}
	}
	wrote := len(lanes) > 0
	defer func() {
		for _, l := range s.lanes {
			l.pieces.Release()
		}
	}()
	for len(lanes) > 0 {
		var sealed allSealedError
		err := s.each(ctx, lanes, func(ctx context.Context, l *lane) error { return sealed.take(l.sweep(ctx, &s.taken)) })
		if err = cmp.Or(err, sealed.join()); err != nil {
			return err
		}
		again, err := s.refuser.refuse(ctx, b, lanes)
		if err = cmp.Or(sealed.take(err), sealed.join()); err != nil {
			return err
		}
		lanes = again
	}
	s.status.Swept(b.newest, wrote)
	if !b.again {
		for _, l := range s.lanes {
			if b.Of(l.shard) {
				l.through = b.To()
			}
		}
		s.stats.CountBatch(&b.Tally, b.records, s.taken.Load(), b.newest, time.Now())
		s.taken.Store(0)
		if t := s.tallied.Load(); b.From() <= t && b.To() > t {
			s.tallied.Store(b.To())
		}
		if s.lag.Counts(s.counted(), b.newest) {
			s.Log.Info("refilled: the events that counted before have been read again, as far as the log has them", zap.Int64("offset", s.counted()))
		}
		s.commits.At(s.Topic, s.Number, s.positions().Lowest(), s.trail)
	}
	return nil
}

// each runs do for some lanes concurrently. After the first error the other lanes stop, each after the piece in
// flight.
func (s *sweeper) each(ctx context.Context, lanes []*lane, do func(context.Context, *lane) error) error {
	if len(lanes) == 1 {
		return do(ctx, lanes[0])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var together sync.WaitGroup
	var once sync.Once
	var first error
	for _, l := range lanes {
		together.Go(func() {
			if err := do(ctx, l); err != nil {
				once.Do(func() { first = err })
				cancel(err)
			}
		})
	}
	together.Wait()
	return first
}

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
