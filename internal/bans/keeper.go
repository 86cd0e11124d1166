package bans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/retry"
)

// Ban is who isn't shown, as the standings hold it.
type Ban struct {
	Key

	Erased  bool
	Pending bool // a change of it has begun and not ended
}

// Standings hide members. Calls return within a bounded time, and can be repeated.
type Standings interface {
	Ban(ctx context.Context, b Ban) error
	Unban(ctx context.Context, k Key) error
	Banned(ctx context.Context) ([]Ban, error)
	// Now is the standings' time, one clock for all replicas: it decides when a ban ends, as it
	// decides when a window does. A clock that is wrong shows a member too early or too late and
	// nothing else, since hidden standings go on.
	Now(ctx context.Context) (time.Time, error)
}

// Keeper brings the standings in line with the topic. It is safe for concurrent use.
type Keeper struct {
	Follower  *Follower
	Standings Standings
	Log       *zap.Logger

	// One bringing in line at a time has its turn: it has put something in. No lock, since it
	// takes as long as a shard is held, and whoever waits for it ends with its own context.
	turn chan struct{}
	said map[Key]bool // of whom it was logged that they stay erased; whose turn it is has it

	mu   sync.Mutex
	next time.Time // when the next ban ends, by the standings' clock
	done int64     // the number of the last one that ended well

	begun atomic.Int64 // the number of the last one that began
	woken chan struct{}
}

// NewKeeper makes one.
func NewKeeper(f *Follower, s Standings, log *zap.Logger) *Keeper {
	return &Keeper{Follower: f, Standings: s, Log: log, woken: make(chan struct{}, 1), turn: make(chan struct{}, 1), said: map[Key]bool{}}
}

// Align compares the standings with the topic once, and changes what differs. The topic has to
// have been read to its end, see Follower.Ready: it is refused before, as it would show who is
// banned.
func (k *Keeper) Align(ctx context.Context) error {
	before := k.begun.Load()
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-k.turn }()
	if k.last() > before { // one that began after this call has ended: all partitions start together
		return nil
	}
	number := k.begun.Add(1)
	state := k.Follower.State()
	if state == nil {
		return errNotRead
	}
	now, err := k.Standings.Now(ctx)
	if err != nil {
		return fmt.Errorf("bring the bans in line: %w", err)
	}
	wanted, next := state.inForce(now)
	found, err := k.Standings.Banned(ctx)
	if err != nil {
		return fmt.Errorf("bring the bans in line: %w", err)
	}
	hide, show := differences(wanted, found)
	for _, b := range hide {
		if err := k.Standings.Ban(ctx, b); err != nil {
			return fmt.Errorf("bring the bans in line: %w", err)
		}
	}
	for _, b := range show {
		if b.Erased {
			k.staysErased(b.Key)
			continue
		}
		if err := k.Standings.Unban(ctx, b.Key); err != nil {
			return fmt.Errorf("bring the bans in line: %w", err)
		}
	}
	if len(hide)+len(show) > 0 {
		k.Log.Info("members were hidden or shown as the bans topic says", zap.Int("hidden", len(hide)), zap.Int("shown", len(show)), zap.Int("banned", len(wanted)))
	}
	k.mu.Lock()
	k.next, k.done = next, number
	k.mu.Unlock()
	return nil
}

// last is the number of the last one that ended well.
func (k *Keeper) last() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done
}

// staysErased: what a member had isn't kept, and their events weren't counted, so that to show
// them would show too little.
func (k *Keeper) staysErased(key Key) {
	if !k.said[key] {
		k.said[key] = true
		k.Log.Warn("a member stays erased although the bans topic doesn't say so any more: what they had isn't kept, so there is nothing to show",
			zap.String("board", key.Board))
	}
}

// differences are what is to be hidden and what is to be shown, in order.
func differences(wanted map[Key]Ban, found []Ban) (hide, show []Ban) {
	missing := maps.Clone(wanted)
	for _, f := range found {
		w, ok := wanted[f.Key]
		switch {
		case !ok:
			show = append(show, f)
		case f.Erased && !w.Erased:
			// For good, whatever the topic says now.
			delete(missing, f.Key)
		case f.Erased == w.Erased && !f.Pending:
			delete(missing, f.Key)
		}
	}
	hide = slices.Collect(maps.Values(missing))
	for _, all := range [][]Ban{hide, show} {
		slices.SortFunc(all, func(a, b Ban) int { return compareKeys(a.Key, b.Key) })
	}
	return hide, show
}

// Wake has the standings compared soon: they may be another server's, or have gone back.
func (k *Keeper) Wake() {
	select {
	case k.woken <- struct{}{}:
	default: // it is going to be compared anyway
	}
}

const (
	// compareEvery is how often the standings are compared where nothing asks for it.
	compareEvery = 10 * time.Second
	// compareAtMost is how often at most: a pool that makes connections wakes for each of them.
	compareAtMost = time.Second
	// sayEvery is how often a wait that goes on is logged.
	sayEvery = 5 * time.Second
)

// Watch keeps the standings in line until the context ends: at each record of the topic, when a
// ban ends by itself, when it is woken, and now and then.
func (k *Keeper) Watch(ctx context.Context) {
	var logged retry.LogLimit
	for {
		changed := k.Follower.Changed()
		pause := compareEvery
		if err := k.Align(ctx); err != nil && ctx.Err() == nil {
			pause = compareAtMost
			if !errors.Is(err, errNotRead) && logged.Due(sayEvery) {
				k.Log.Warn("the standings aren't in line with the bans topic; trying again", zap.Error(err))
			}
		} else {
			logged.Reset()
			pause = k.pause(ctx, pause)
		}
		select {
		case <-changed: // at once: an operator waits
		case <-time.After(pause):
		case <-ctx.Done():
			return
		case <-k.woken:
			if retry.Sleep(ctx, compareAtMost) != nil {
				return
			}
		}
	}
}

// pause is how long the standings need not be looked at: less than most where a ban ends sooner.
func (k *Keeper) pause(ctx context.Context, most time.Duration) time.Duration {
	k.mu.Lock()
	next := k.next
	k.mu.Unlock()
	if next.IsZero() {
		return most
	}
	now, err := k.Standings.Now(ctx)
	if err != nil {
		return compareAtMost
	}
	return min(most, max(next.Sub(now), time.Millisecond))
}
