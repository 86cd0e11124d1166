package reshard

// The locks of a reshard: one for the prefix, which excludes other reshards and makes consumers pause; the
// rebuild lock of every shard; and the hold of every shard, during which nothing is applied. All expire
// together.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
)

// BusyError reports that another reshard or a rebuild is running.
type BusyError struct {
	What  string // a reshard, a rebuild
	Owner string
	Left  time.Duration // until its lock expires, unless it is renewed
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s is under way already, by %s; if that one is gone, its lock ends in %v", e.What, e.Owner, e.Left.Round(time.Second))
}

// lease is all locks of a reshard, renewed until end.
type lease struct {
	prefix string
	shards []*ranking.Store
	text   string // the value of every lock
	token  string // unique to this reshard; part of text
	length time.Duration
	ctx    context.Context //nolint:containedctx // ends where the lease is lost
	cancel context.CancelCauseFunc
	ended  sync.WaitGroup

	mu   sync.Mutex
	held []*ranking.Store
}

// take takes the locks, and renews them from then on. It returns a *BusyError if another job has one of
// them.
func take(ctx context.Context, j *Job, shards []*ranking.Store) (*lease, error) {
	token := strings.ToLower(rand.Text())
	text, err := json.Marshal(inventory.Reshard{
		Token: token, Owner: j.Owner, Began: time.Now().UTC().Truncate(time.Millisecond), From: j.View.Shards, To: j.To,
	})
	if err != nil {
		panic(err) // cannot fail: texts, numbers and a time
	}
	l := &lease{prefix: j.View.Prefix, shards: shards, text: string(text), token: token, length: j.Lease}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	if err := l.lock(); err != nil {
		l.end()
		return nil, err
	}
	l.ended.Go(l.renew)
	return l, nil
}

func (l *lease) lock() error {
	if err := l.one(l.ctx, l.home(), ranking.ReshardKey(l.prefix), "a reshard"); err != nil {
		return err
	}
	for _, s := range l.shards {
		if err := l.one(l.ctx, s, s.Keys().Rebuild(), "a rebuild"); err != nil {
			return err
		}
	}
	return nil
}

// home returns a store for keys of the prefix, which do not depend on the number of shards.
func (l *lease) home() *ranking.Store { return l.shards[0] }

// one takes one lock. It succeeds if this reshard already has it.
func (l *lease) one(ctx context.Context, s *ranking.Store, key, what string) error {
	err := s.TakeLock(ctx, ranking.Lock{Key: key, Holds: l.text}, l.length)
	if other, ok := errors.AsType[*ranking.LockedError](err); ok {
		busy := &BusyError{What: what, Owner: "someone", Left: other.Left}
		var whose inventory.Reshard
		if json.Unmarshal([]byte(other.Holds), &whose) == nil && whose.Owner != "" {
			busy.Owner = whose.Owner
		}
		return busy
	}
	if err != nil {
		return fmt.Errorf("take the lock of %s: %w", what, err)
	}
	return nil
}

// hold stops ingestion on the given shards until release. It returns a *BusyError if another job has one of
// the holds.
func (l *lease) hold(ctx context.Context, shards []*ranking.Store) error {
	for _, s := range shards {
		if err := l.one(ctx, s, s.Keys().Hold(), "a rebuild's swap"); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = shards
	return nil
}

// release ends the hold of the given shards.
func (l *lease) release(ctx context.Context, shards []*ranking.Store) error {
	l.mu.Lock()
	l.held = nil
	l.mu.Unlock()
	return ranking.ReleaseLocks(ctx, shards, l.holds(shards))
}

// holds returns the holds of the given shards.
func (l *lease) holds(shards []*ranking.Store) []ranking.Lock {
	locks := make([]ranking.Lock, len(shards))
	for i, s := range shards {
		locks[i] = ranking.Lock{Key: s.Keys().Hold(), Holds: l.text}
	}
	return locks
}

// rebuilds returns the rebuild locks of all shards.
func (l *lease) rebuilds() []ranking.Lock {
	locks := make([]ranking.Lock, len(l.shards))
	for i, s := range l.shards {
		locks[i] = ranking.Lock{Key: s.Keys().Rebuild(), Holds: l.text}
	}
	return locks
}

// own returns the lock that excludes other reshards.
func (l *lease) own() []ranking.Lock {
	return []ranking.Lock{{Key: ranking.ReshardKey(l.prefix), Holds: l.text}}
}

// renew renews all locks until the context ends.
func (l *lease) renew() {
	tick := time.NewTicker(l.length / 5)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return
		}
		began := time.Now()
		err := l.prolong(l.ctx)
		switch {
		case err == nil:
			last = began
		case errors.Is(err, ErrHeld), ranking.Classify(err) != ledger.Retry, time.Since(last) > l.length:
			l.cancel(err)
			return
		}
	}
}

// prolong renews all locks once. It returns ErrHeld if another job has one of them or it has expired.
func (l *lease) prolong(ctx context.Context) error {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	shards := slices.Concat([]*ranking.Store{l.home()}, l.shards, held)
	err := ranking.RenewLocks(ctx, l.length, shards, slices.Concat(l.own(), l.rebuilds(), l.holds(held)))
	if errors.Is(err, ranking.ErrUnlocked) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if held != nil && l.held == nil {
			return nil // released meanwhile
		}
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	if err != nil {
		return fmt.Errorf("renew the reshard's lease: %w", err)
	}
	return nil
}

// leaveTime is how long end tries to release the locks. Locks that it cannot release expire.
const leaveTime = 5 * time.Second

// end stops the renewal and releases all locks.
func (l *lease) end() {
	l.cancel(nil)
	l.ended.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), leaveTime)
	defer cancel()
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	_ = ranking.ReleaseLocks(ctx, slices.Concat(held, l.shards), slices.Concat(l.holds(held), l.rebuilds()))
	// This lock is released last, so that consumers that pause for it find no hold.
	_ = ranking.ReleaseLocks(ctx, []*ranking.Store{l.home()}, l.own())
}

// TryCommands checks that the Redis user may run every command of a reshard, on every shard.
func TryCommands(ctx context.Context, v *inventory.View) error {
	for _, s := range v.Stores() {
		if err := s.TryUsed(ctx, ranking.UsedByReshard); err != nil {
			return err
		}
	}
	return nil
}
