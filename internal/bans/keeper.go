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

// Ban is a ban as recorded in the standings.
type Ban struct {
	Key

	Erased  bool
	Pending bool // a change of this ban has started but not ended
}

// Standings hide members. Calls return within a bounded time, and can be repeated.
type Standings interface {
	Ban(ctx context.Context, b Ban) error
	Unban(ctx context.Context, k Key) error
	Banned(ctx context.Context) ([]Ban, error)
	// Now returns the standings' time, one clock for all replicas. It decides when a ban ends, as it decides when
	// a window does. A wrong clock only shows a member too early or too late, since events of hidden members are
	// counted, too.
	Now(ctx context.Context) (time.Time, error)
}

// Keeper applies the bans topic to the standings. It is safe for concurrent use.
type Keeper struct {
	Follower  *Follower
	Standings Standings
	Log       *zap.Logger

	// turn holds a token while one Align works. It is not a mutex, since Align may take as long as a shard is
	// held, and a waiting Align must end with its own context.
	turn chan struct{}
	said map[Key]bool // logged as staying erased; guarded by turn, as is late
	late retry.LogLimit

	mu   sync.Mutex
	next time.Time // when the next ban ends, by the standings' clock
	done int64     // number of the last Align that succeeded

	begun    atomic.Int64                // number of the last Align that began
	upToDate func(context.Context) error // Follower.UpToDate; tests replace it
	woken    chan struct{}
}

// NewKeeper returns a keeper.
func NewKeeper(f *Follower, s Standings, log *zap.Logger) *Keeper {
	return &Keeper{Follower: f, Standings: s, Log: log, upToDate: f.UpToDate, woken: make(chan struct{}, 1), turn: make(chan struct{}, 1), said: map[Key]bool{}}
}

// Align compares the standings with the topic once, and applies the differences. It returns an error until the
// topic was read to its end (see Follower.Ready), since it would show banned members before.
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
	if k.last() > before { // another Align began after this call and succeeded: all partitions start at the same time
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

// last returns the number of the last Align that succeeded.
func (k *Keeper) last() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done
}

// showWithin is how long Align waits for the topic's end before it postpones showing members.
const showWithin = time.Second

// show shows members again, or reports that they must wait. It prevents this race of two replicas, of which one
// has read further:
//
//	A reads the record of a ban, and hides the member.
//	B, which has not read that record yet, finds the member hidden without a ban.
//
// So before a replica shows members, it reads the topic up to the end that it has after it found them hidden.
// While the topic is unavailable, no member is shown.
func (k *Keeper) show(ctx context.Context, show []Ban) (later bool, err error) {
	if len(show) == 0 {
		return false, nil
	}
	within, cancel := context.WithTimeout(ctx, showWithin)
	defer cancel()
	if err := k.upToDate(within); err != nil {
		if k.Follower.Waits() == nil && k.late.Due(sayEvery) { // otherwise Follower.Run logs it
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

// staysErased reports whether a member must stay erased. The member's standings are gone and its later events were
// not counted, so showing it would show too little.
func (k *Keeper) staysErased(b Ban) bool {
	if b.Erased && !k.said[b.Key] {
		k.said[b.Key] = true
		k.Log.Warn("a member stays erased although the bans topic no longer has the erasure: their standings were deleted",
			zap.String("board", b.Board))
	}
	return b.Erased
}

// differences returns the bans to apply and the bans to lift, in order.
func differences(wanted map[Key]Ban, found []Ban) (hide, show []Ban) {
	missing := maps.Clone(wanted)
	for _, f := range found {
		w, ok := wanted[f.Key]
		switch {
		case !ok:
			show = append(show, f)
		case f.Erased && !w.Erased:
			// An erasure is permanent, whatever the topic has now.
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

// Wake triggers a comparison soon, since Redis may have failed over or gone back.
func (k *Keeper) Wake() {
	select {
	case k.woken <- struct{}{}:
	default: // a comparison is already due
	}
}

const (
	// compareEvery is the interval of comparisons without another trigger.
	compareEvery = 10 * time.Second
	// compareAtMost is the minimum interval of comparisons triggered by Wake: a connection pool calls Wake for
	// each new connection.
	compareAtMost = time.Second
	// sayEvery is the minimum interval between log lines about the same wait.
	sayEvery = 5 * time.Second
)

// Watch keeps the standings up to date until the context ends. It compares at each record of the topic, when a
// ban's time is over, after Wake, and every compareEvery.
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

// wait waits for the next trigger of a comparison, or until the context ends.
func (k *Keeper) wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) error {
	due := time.NewTimer(pause)
	defer due.Stop()
	woken := k.woken
	for {
		select { // a record comes first and without delay, since an operator waits for it
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

// pause returns the time until the next comparison: most, or less if a ban ends sooner.
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
