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
	said map[Key]bool // of whom it was logged that they stay erased; whose turn it is has it, and late
	late retry.LogLimit

	mu   sync.Mutex
	next time.Time // when the next ban ends, by the standings' clock
	done int64     // the number of the last one that ended well

	begun    atomic.Int64                // the number of the last one that began
	upToDate func(context.Context) error // the follower's; tests have another
	woken    chan struct{}
}

// NewKeeper makes one.
func NewKeeper(f *Follower, s Standings, log *zap.Logger) *Keeper {
	return &Keeper{Follower: f, Standings: s, Log: log, upToDate: f.UpToDate, woken: make(chan struct{}, 1), turn: make(chan struct{}, 1), said: map[Key]bool{}}
}

// Align compares the standings with the topic once, and changes what differs. The topic has to
// have been read to its end, see Follower.Ready: it is refused before, as it would show who is
// banned.
func (k *Keeper) Align(ctx context.Context) error {
	before := k.begun.Load()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
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
	show = slices.DeleteFunc(show, k.staysErased)
	if later, err := k.show(ctx, show); err != nil {
		return fmt.Errorf("bring the bans in line: %w", err)
	} else if later {
		show = nil
		if soon := now.Add(compareAtMost); next.IsZero() || soon.Before(next) {
			next = soon
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

// showWithin is how long whoever waits to apply something waits for the topic's end, for others to be
// shown.
const showWithin = time.Second

// show shows members again, or reports that they may be shown later. Of two replicas one has read
// further:
//
//	it reads the record of a ban, and hides the member
//	the other one, which hasn't come to that record, finds the member hidden, and no reason for it
//
// So whoever shows anybody has read the topic to its end as it was after they were found to be hidden.
// While the topic is away nobody is shown.
func (k *Keeper) show(ctx context.Context, show []Ban) (later bool, err error) {
	if len(show) == 0 {
		return false, nil
	}
	within, cancel := context.WithTimeout(ctx, showWithin)
	defer cancel()
	if err := k.upToDate(within); err != nil {
		if k.Follower.Waits() == nil && k.late.Due(sayEvery) { // else that is logged
			k.Log.Warn("members stay hidden whose bans seem to be over or taken back, until the bans topic's end is known: another replica may have read further", zap.Int("members", len(show)), zap.Error(err))
		}
		return true, nil
	}
	now, err := k.Standings.Now(ctx)
	if err != nil {
		return false, err
	}
	wanted, _ := k.Follower.State().inForce(now)
	for _, b := range show {
		if _, banned := wanted[b.Key]; banned {
			continue
		}
		if err := k.Standings.Unban(ctx, b.Key); err != nil {
			return false, err
		}
	}
	return false, nil
}

// staysErased: what a member had isn't kept, and their events weren't counted, so that to show
// them would show too little.
func (k *Keeper) staysErased(b Ban) bool {
	if b.Erased && !k.said[b.Key] {
		k.said[b.Key] = true
		k.Log.Warn("a member stays erased although the bans topic doesn't say so any more: what they had isn't kept, so there is nothing to show",
			zap.String("board", b.Board))
	}
	return b.Erased
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
		slices.SortFunc(all, func(a, b Ban) int { return a.Compare(b.Key) })
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
		if k.wait(ctx, changed, pause) != nil {
			return
		}
	}
}

// wait waits for what asks for a comparison, or until the context ends.
func (k *Keeper) wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) error {
	due := time.NewTimer(pause)
	defer due.Stop()
	woken := k.woken
	for {
		select { // a record goes before all else, and at once: an operator waits
		case <-changed:
			return nil
		default:
		}
		select {
		case <-changed:
			return nil
		case <-due.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-woken:
			woken = nil
			due.Reset(min(pause, compareAtMost))
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
