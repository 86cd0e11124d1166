package ingest

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// sweeper applies a partition's batches, all shards side by side. It is its worker's
// goroutine's.
//
// The next batch begins once every shard is through with the one before: a shard that is
// away stops them all, and what is held meanwhile is no more than with one.
type sweeper struct {
	*partition
	lanes       []*lane
	calls       *calls // of all lanes
	batches     *handoff
	refuser     *refuser
	commits     *commits
	status      *health.Status
	lag         *health.LagTracker
	stats       *Stats
	reconnected *atomic.Int64 // counts new connections to the standings
	exact       bool          // every shard is brought to the end of every batch
	pause       *Pause

	trail   trail.Trail   // as far as it was swept, or further
	tallied *atomic.Int64 // see carried
	taken   atomic.Int64  // events of the sweep's pieces so far: already counted as consumed
}

// lastCall is how long a piece in flight is waited for at the end of a generation.
const lastCall = 3 * time.Second

// outlive is a context that ends a while after another.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// lookEvery is how often an idle worker looks at its ledger, so that a Redis
// that went back in time is seen where no event follows.
const lookEvery = time.Second

// run sweeps what comes until the context ends or a ledger turns out to be
// elsewhere. It stops between two pieces, never within one.
func (s *sweeper) run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	calls, cancel := outlive(ctx, lastCall)
	defer cancel()
	defer s.moveLagging(ctx) // before calls end
	s.calls.ctx = calls
	connections := s.reconnected.Load()
	for ctx.Err() == nil {
		err := s.paused(ctx, look.C)
		if err == nil {
			err = s.next(ctx, look.C)
		}
		if err == nil && s.reconnected.Load() != connections {
			// Behind a new connection there may be another Redis.
			connections = s.reconnected.Load()
			err = s.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// next waits for what is to be done, and does it. A look that is due goes first: where
// batches never end, chance would put it off.
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

// look is done where there is nothing else to do, and now and then beside it.
func (s *sweeper) look(ctx context.Context) error {
	if err := s.compare(ctx); err != nil {
		return err
	}
	s.status.Looked()
	return nil
}

// compare compares every ledger with where it should stand, and moves those that lag.
func (s *sweeper) compare(ctx context.Context) error {
	lagged := s.lags()
	if err := s.each(ctx, s.lanes, func(ctx context.Context, l *lane) error { return l.look(ctx) }); err != nil {
		return err
	}
	if at := s.positions(); !at.Sweeping() && s.commits != nil {
		if lagged {
			s.commits.at(s.Topic, s.Number, at.Lowest(), s.trail)
		} else {
			s.commits.still(s.Topic, s.Number, at.Lowest(), s.trail)
		}
	}
	return nil
}

// moveLagging moves the shards that lag where a generation ends, so that whoever comes next has
// little to read again. It is tried once.
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
	s.commits.at(s.Topic, s.Number, s.positions().Lowest(), s.trail)
}

// lags reports whether any shard does.
func (s *sweeper) lags() bool {
	for _, l := range s.lanes {
		if l.lags() {
			return true
		}
	}
	return false
}

// counted is the offset before which every event counts, in every shard.
func (s *sweeper) counted() int64 {
	counted := s.lanes[0].counted()
	for _, l := range s.lanes[1:] {
		counted = min(counted, l.counted())
	}
	return counted
}

// positions are where the shards stand.
func (s *sweeper) positions() ledger.Positions {
	all := make(ledger.Positions, len(s.lanes))
	for i, l := range s.lanes {
		all[i] = l.at
	}
	return all
}

// sweep applies a batch. Its events without a member are counted with the last
// piece, since until then another owner may come to count them.
func (s *sweeper) sweep(ctx context.Context, b *batch) error {
	defer s.batches.recycle(b)
	s.lag.Sweeping(b.oldest)
	s.trail = b.trail // of what was read, whether or not it counts in the end
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
		s.stats.swept(&b.tally, b.records, s.taken.Load(), b.newest, time.Now())
		s.taken.Store(0)
		if t := s.tallied.Load(); b.From() <= t && b.To() > t {
			s.tallied.Store(b.To())
		}
		if s.lag.Counts(s.counted(), b.newest) {
			s.log.Info("refilled: the events that counted before have been read again, as far as the log has them", zap.Int64("offset", s.counted()))
		}
		s.commits.at(s.Topic, s.Number, s.positions().Lowest(), s.trail)
	}
	return nil
}

// each goes some lanes side by side. With the first error the others stop, each after the
// piece in flight.
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
