package reshard

// What keeps others out while the standings are copied: the lock that makes it the only reshard,
// by which consumers pause; the lock of rebuilds on every shard; and on every shard the hold,
// while which nothing is applied. All of them expire together.

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
)

// BusyError says that another reshard, or a rebuild, is under way.
type BusyError struct {
	What  string // a reshard, a rebuild
	Owner string
	Left  time.Duration // until its lock ends, unless it is renewed
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s is under way already, by %s; if that one is gone, its lock ends in %v", e.What, e.Owner, e.Left.Round(time.Second))
}

// lease is all that a reshard holds, renewed until its end.
type lease struct {
	prefix string
	shards []*ranking.Store
	text   string // what every lock holds
	token  string // in it: this reshard's alone
	length time.Duration
	ctx    context.Context //nolint:containedctx // ends where the lease is lost
	cancel context.CancelCauseFunc
	ended  sync.WaitGroup

	mu   sync.Mutex
	held []*ranking.Store
}

// take takes the locks, and renews them from then on. *BusyError says that one can't be had.
func take(ctx context.Context, j *Job, shards []*ranking.Store) (*lease, error) {
	token := strings.ToLower(rand.Text())
	text, err := json.Marshal(ranking.Reshard{
		Token: token, Owner: j.Owner, Began: time.Now().UTC().Truncate(time.Millisecond), From: j.View.Shards, To: j.To,
	})
	if err != nil {
		panic(err) // texts, numbers and a time
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

// home is a store for keys that are the prefix's, whatever the number of shards.
func (l *lease) home() *ranking.Store { return l.shards[0] }

// one takes a lock, also if it is ours already.
func (l *lease) one(ctx context.Context, s *ranking.Store, key, what string) error {
	err := s.TakeLock(ctx, ranking.Lock{Key: key, Holds: l.text}, l.length)
	if other, ok := errors.AsType[*ranking.LockedError](err); ok {
		busy := &BusyError{What: what, Owner: "someone", Left: other.Left}
		var whose ranking.Reshard
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

// hold has nothing be applied any more to some shards, until release. It returns a *BusyError
// where one is held by another.
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

// release ends the hold of these.
func (l *lease) release(ctx context.Context, shards []*ranking.Store) error {
	l.mu.Lock()
	l.held = nil
	l.mu.Unlock()
	return ranking.ReleaseLocks(ctx, shards, l.holds(shards))
}

// holds are the holds of shards.
func (l *lease) holds(shards []*ranking.Store) []ranking.Lock {
	locks := make([]ranking.Lock, len(shards))
	for i, s := range shards {
		locks[i] = ranking.Lock{Key: s.Keys().Hold(), Holds: l.text}
	}
	return locks
}

// rebuilds are the locks of rebuilds on all shards.
func (l *lease) rebuilds() []ranking.Lock {
	locks := make([]ranking.Lock, len(l.shards))
	for i, s := range l.shards {
		locks[i] = ranking.Lock{Key: s.Keys().Rebuild(), Holds: l.text}
	}
	return locks
}

// own is the lock that makes it the only reshard.
func (l *lease) own() []ranking.Lock {
	return []ranking.Lock{{Key: ranking.ReshardKey(l.prefix), Holds: l.text}}
}

// renew lets everything live on, until the context ends.
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

// prolong is ErrHeld where anything isn't ours any more.
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

// leaveTime is how long the end tries to let go; what it can't expires.
const leaveTime = 5 * time.Second

// end lets go of everything.
func (l *lease) end() {
	l.cancel(nil)
	l.ended.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), leaveTime)
	defer cancel()
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	_ = ranking.ReleaseLocks(ctx, slices.Concat(held, l.shards), slices.Concat(l.holds(held), l.rebuilds()))
	// The last: whoever pauses for it finds nothing held any more.
	_ = ranking.ReleaseLocks(ctx, []*ranking.Store{l.home()}, l.own())
}

// TryCommands checks that this user may run all that a reshard runs, on every shard.
func TryCommands(ctx context.Context, v *ranking.View) error {
	for _, s := range v.Stores() {
		if err := s.TryUsed(ctx, ranking.UsedByReshard); err != nil {
			return err
		}
	}
	return nil
}
