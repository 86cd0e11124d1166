// Package shadow is what a rebuild does in Redis: it takes the lock that makes it the only
// one, keeps a shadow of the live standings into which the log is folded, plans what becomes
// of each window, compares, and swaps, under a hold or by taking over.
//
//	Lock ─▶ Shadow().Begin, Apply, … ─▶ Plan, Compare ─▶ Hold ─▶ Swap ─▶ Unlink ─▶ Close
//	  │                                    └─────────────▶ TakeOver ───────┘
//	  └──── Renew: all that the rebuild has lives on for a lease ────────────┘
//
// The live standings change in one call, swap.lua, or not at all. Whatever a rebuild has in
// Redis ends by itself, all at the same moment, when the rebuild does.
package shadow

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

// Rebuild is a rebuild under way: it has the lock. It is safe for concurrent use.
type Rebuild struct {
	live   *ranking.Store
	shadow *Store
	id     string
	lock   string // what the lock holds while it is ours
	lease  time.Duration
	bans   atomic.Bool // the shadow has a hash of bans

	mu      sync.Mutex
	begun   bool // the shadow was seen to have a ledger
	swapped bool
	leaving bool              // the shadow is being removed, which isn't its loss
	unsure  bool              // a swap was sent, and no answer of the script has come
	last    *Plan             // that was tried to be carried out
	read    *listings         // what was listed when it was read last
	taken   ranking.BansTaken // as the shadow has them
}

// lockText is what the lock holds: who rebuilds.
type lockText struct {
	Token string    `json:"token"`
	Owner string    `json:"owner"`
	Began time.Time `json:"began"`
}

// BusyError says that another rebuild is under way.
type BusyError struct {
	Prefix string
	Owner  string
	Began  time.Time
	Until  time.Time // when its lock ends, unless it is renewed
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("a rebuild of %q is under way already: by %s, since %s; if that one is gone, its lock ends at %s",
		e.Prefix, e.Owner, e.Began.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339))
}

// ErrLost says that a rebuild has lost its lock, or a part of its shadow: it was paused
// for longer than its lease, or Redis went back in time. It can't go on, and has changed
// nothing.
var ErrLost = errors.New("the rebuild's lease is over, or Redis has lost a part of what it had rebuilt")

// ErrUnheld says that a rebuild hasn't got the hold: another has it, or it has lapsed.
// Nothing was changed; it can be taken again.
var ErrUnheld = errors.New("the hold is another's, or has lapsed")

// Lock takes the lock of live boards, for an owner, whose name others see. All that the
// rebuild has in Redis lives for lease unless Renew is called, well within it: at a third, say.
// *BusyError says that another is rebuilding.
func Lock(ctx context.Context, live *ranking.Store, owner string, lease time.Duration) (*Rebuild, error) {
	id := strings.ToLower(rand.Text())
	text, err := json.Marshal(lockText{Token: id, Owner: owner, Began: time.Now().UTC().Truncate(time.Millisecond)})
	if err != nil {
		panic(err) // two texts and a time
	}
	r := &Rebuild{live: live, shadow: &Store{Store: live.Shadow(id, lease)}, id: id, lock: string(text), lease: lease}
	err = live.TakeLock(ctx, r.locked(), lease)
	if busy, ok := errors.AsType[*ranking.LockedError](err); ok {
		e := &BusyError{Prefix: live.Prefix(), Owner: "someone", Until: time.Now().Add(busy.Left)}
		var other lockText
		if json.Unmarshal([]byte(busy.Holds), &other) == nil {
			e.Owner, e.Began = other.Owner, other.Began
		}
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("take the lock of a rebuild of %q: %w", live.Prefix(), err)
	}
	return r, nil
}

// TryCommands checks that this user may run all that a rebuild runs, as the store's does.
func TryCommands(ctx context.Context, live *ranking.Store) error {
	return live.TryUsed(ctx, ranking.UsedByRebuild)
}

// locked is the lock, and held the hold.
func (r *Rebuild) locked() ranking.Lock {
	return ranking.Lock{Key: r.live.Keys().Rebuild(), Holds: r.lock}
}
func (r *Rebuild) held() ranking.Lock { return ranking.Lock{Key: r.live.Keys().Hold(), Holds: r.id} }

func (r *Rebuild) release(ctx context.Context, l ranking.Lock) error {
	return ranking.ReleaseLocks(ctx, []*ranking.Store{r.live}, []ranking.Lock{l})
}

// Shadow is where the log is folded into.
func (r *Rebuild) Shadow() *Store { return r.shadow }

// Renew lets the lock and all of the shadow live on for a lease. ErrLost says that there
// is nothing left that could: the rebuild is over.
func (r *Rebuild) Renew(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return fmt.Errorf("renew the lease of the rebuild of %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// renew goes through the shadow's windows some hundred a call, so that Redis hardly
// notices however many there are, and ends with what says that they are there, and the
// lock. All get the moment that is chosen at first: so no window goes before the ledger
// does. A window that opens meanwhile is listed; if Redis's clock has gone back, it may expire before the ledger, and
// the swap then finds it listed and gone.
func (r *Rebuild) renew(ctx context.Context) error {
	k, lock := r.shadow.Keys(), r.live.Keys().Rebuild()
	r.mu.Lock()
	swapped := r.swapped || r.leaving
	r.mu.Unlock()
	var core []string
	begun := false
	if !swapped {
		var err error
		if begun, err = r.begins(ctx); err != nil {
			return err
		}
		if begun {
			core = []string{k.Origin(), k.Schema(), k.Ledger()}
		}
	}
	if !swapped && r.bans.Load() {
		core = append(core, k.Banned())
	}
	until, err := r.renewed(ctx, swapped, "", core, 0)
	if err != nil {
		return err
	}
	if begun {
		all, err := r.shadow.Listings(ctx)
		if err != nil {
			return err
		}
		for names := range slices.Chunk(slices.Collect(maps.Keys(all)), renewedAtOnce) {
			windows := []string{k.Windows()}
			for _, name := range names {
				shown, hidden := k.Both(name)
				windows = append(windows, shown, hidden)
			}
			if _, err := r.renewed(ctx, swapped, until, windows, 2*len(names)); err != nil {
				return err
			}
		}
	}
	// The listing, if there is one, is renewed in the call that renews the ledger, since a piece may have created it
	// meanwhile. The names, if there are any, live on until they are among those of the live boards.
	_, err = r.renewed(ctx, swapped, until, append(core, lock, k.Names(), lock, k.Windows(), lock), 4)
	return err
}

// renewedAtOnce is how many windows are renewed a call: a millisecond of Redis's time or so.
const renewedAtOnce = 250

// begins reports whether the shadow has a ledger; that it has lost it is ErrLost.
func (r *Rebuild) begins(ctx context.Context) (bool, error) {
	st, err := r.shadow.State(ctx)
	if err != nil {
		return false, err
	}
	s := side{schema: st.Schema, ledger: st.Ledger}
	return len(s.ledger) > 0, r.whole(&s)
}

// renewed calls the script for some keys, of which the last come in pairs, and returns until when
// they live.
func (r *Rebuild) renewed(ctx context.Context, swapped bool, until string, keys []string, paired int) (string, error) {
	keys = append([]string{r.live.Keys().Rebuild()}, keys...)
	reply, err := r.live.Call(ctx, lua.Keep, keys, r.lock, paired, cmp.Or(until, "choose"), r.lease.Milliseconds())
	if err != nil {
		return "", err
	}
	words, err := ranking.Texts(reply)
	switch {
	case err != nil:
		return "", err
	case len(words) == 3 && words[0] == "kept":
		return words[1], nil
	case len(words) == 2 && words[0] == "lost":
		r.mu.Lock()
		defer r.mu.Unlock()
		if (r.swapped || r.leaving) && !swapped {
			return until, nil // meanwhile
		}
		return "", fmt.Errorf("%w (%s)", ErrLost, words[1])
	}
	return "", ranking.Unexpected(lua.Keep, reply)
}

// whole reports that the shadow has lost its ledger.
func (r *Rebuild) whole(shadow *side) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(shadow.ledger) > 0 {
		r.begun = true
	} else if r.begun && !r.swapped && !r.leaving && shadow.schema != swappedMark {
		return fmt.Errorf("%w (%s)", ErrLost, r.shadow.Keys().Ledger())
	}
	return nil
}

// Hold stops all ingestion of the shard until it is released, swapped, or lease is over.
// ErrUnheld says that it is held by another, ErrLost that the lock is lost.
func (r *Rebuild) Hold(ctx context.Context, lease time.Duration) error {
	err := r.live.TakeLock(ctx, r.held(), lease, r.locked())
	if busy, ok := errors.AsType[*ranking.LockedError](err); ok {
		err = fmt.Errorf("%w (for another %v)", ErrUnheld, busy.Left)
	} else if errors.Is(err, ranking.ErrUnlocked) {
		err = ErrLost
	}
	if err != nil {
		return fmt.Errorf("hold up ingestion under %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// Release ends the hold, if it is still ours.
func (r *Rebuild) Release(ctx context.Context) error {
	if err := r.release(ctx, r.held()); err != nil {
		return fmt.Errorf("let ingestion under %q go on: %w", r.live.Prefix(), err)
	}
	return nil
}

// Close lets go of the hold and the lock, if they are still ours. What the rebuild leaves
// behind is for Unlink, before, or expires.
func (r *Rebuild) Close(ctx context.Context) error {
	if err := errors.Join(r.Release(ctx), r.release(ctx, r.locked())); err != nil {
		return fmt.Errorf("let go of the lock of the rebuild of %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// side is what stands beside scores: live ones, or a shadow's.
type side struct {
	schema          string
	ledger, origins map[string]string
	since           map[string]int64 // of periods that were added, as ledger.State.Since
	windows         int              // that are listed
}

// both reads what is beside the live scores and the shadow's, as of one moment.
func (r *Rebuild) both(ctx context.Context) (live, shadow side, now int64, err error) {
	var both []string
	var kinds []any
	for _, k := range []ranking.Keys{r.live.Keys(), r.shadow.Keys()} {
		both = append(both, k.Ledger(), k.Schema(), k.Origin(), k.Windows())
		kinds = append(kinds, "hash", "text", "hash", "size")
	}
	reply, err := r.live.Call(ctx, lua.State, both, kinds...)
	if err != nil {
		return side{}, side{}, 0, err
	}
	if len(reply) != 1+len(both) {
		return side{}, side{}, 0, ranking.Unexpected(lua.State, reply)
	}
	if now, err = wholeNumber(reply[0]); err != nil {
		return side{}, side{}, 0, err
	}
	for i, into := range []*side{&live, &shadow} {
		if *into, err = readSide(reply[1+4*i : 5+4*i]); err != nil {
			return side{}, side{}, 0, err
		}
	}
	return live, shadow, now, nil
}

func readSide(all []any) (s side, err error) {
	s.schema, _ = all[1].(string)
	for i, into := range []*map[string]string{&s.ledger, &s.origins} {
		if *into, err = ranking.Fields(all[2*i]); err != nil {
			return side{}, err
		}
	}
	if s.since, err = ranking.TakeSince(s.origins); err != nil {
		return side{}, err
	}
	n, ok := all[3].(int64)
	if !ok {
		return side{}, ranking.Unexpected(lua.State, all)
	}
	s.windows = int(n)
	return s, nil
}

// denotes is the position that a ledger's text stands for once its scores are replaced.
func denotes(text string) string {
	return strings.TrimPrefix(text, ledger.TornMark)
}
