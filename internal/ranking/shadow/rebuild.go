// Package shadow does the part of a rebuild that runs in Redis. It takes the lock that admits one rebuild
// at a time, maintains a shadow of the live standings into which the log is folded, plans an action for
// each window, compares both copies, and swaps them, either under a hold or by taking over without one.
//
//	Lock ─▶ Shadow().Begin, Apply, … ─▶ Plan, Compare ─▶ Hold ─▶ Swap ─▶ Unlink ─▶ Close
//	  │                                    └─────────────▶ TakeOver ───────┘
//	  └──── Renew: extends everything that the rebuild has by one lease ─────┘
//
// The live standings change in one call, swap.lua, or not at all. All keys of a rebuild expire at the same
// moment unless the rebuild renews them.
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

// Rebuild is a rebuild that holds the lock. It is safe for concurrent use.
type Rebuild struct {
	live   *ranking.Store
	shadow *Store
	id     string
	lock   string // the lock's value while this rebuild holds it
	lease  time.Duration
	bans   atomic.Bool // the shadow has a hash of bans

	mu      sync.Mutex
	begun   bool // the shadow was seen to have a ledger
	swapped bool
	leaving bool              // the shadow is being removed, so missing keys are not a loss
	unsure  bool              // a swap was sent, and the script has not replied
	last    *Plan             // the last plan that was sent to swap.lua
	read    *listings         // the listings as last read
	taken   ranking.BansTaken // the bans as the shadow has them
}

// lockText is the value of the lock: the owner of the rebuild.
type lockText struct {
	Token string    `json:"token"`
	Owner string    `json:"owner"`
	Began time.Time `json:"began"`
}

// BusyError reports that another rebuild is running.
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

// ErrLost reports that a rebuild has lost its lock or a part of its shadow, because it was paused for
// longer than its lease or because Redis was rolled back. The rebuild cannot continue, and has changed
// nothing.
var ErrLost = errors.New("the rebuild's lease is over, or Redis has lost a part of what it had rebuilt")

// ErrUnheld reports that this rebuild does not have the hold: another rebuild has it, or it has lapsed.
// Nothing was changed, and the caller may take the hold again.
var ErrUnheld = errors.New("the hold is another's, or has lapsed")

// Lock takes the rebuild lock of the live boards. Other rebuilds see owner in their BusyError. All keys of
// the rebuild expire after lease unless Renew is called, about every third of a lease. Lock returns a
// *BusyError if another rebuild has the lock.
func Lock(ctx context.Context, live *ranking.Store, owner string, lease time.Duration) (*Rebuild, error) {
	id := strings.ToLower(rand.Text())
	text, err := json.Marshal(lockText{Token: id, Owner: owner, Began: time.Now().UTC().Truncate(time.Millisecond)})
	if err != nil {
		panic(err) // cannot fail: two texts and a time
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

// TryCommands checks that the Redis user may run every command that a rebuild runs.
func TryCommands(ctx context.Context, live *ranking.Store) error {
	return live.TryUsed(ctx, ranking.UsedByRebuild)
}

// locked returns the lock, and held the hold.
func (r *Rebuild) locked() ranking.Lock {
	return ranking.Lock{Key: r.live.Keys().Rebuild(), Holds: r.lock}
}
func (r *Rebuild) held() ranking.Lock { return ranking.Lock{Key: r.live.Keys().Hold(), Holds: r.id} }

func (r *Rebuild) release(ctx context.Context, l ranking.Lock) error {
	return ranking.ReleaseLocks(ctx, []*ranking.Store{r.live}, []ranking.Lock{l})
}

// Shadow returns the store into which the log is folded.
func (r *Rebuild) Shadow() *Store { return r.shadow }

// Renew extends the lock and the whole shadow by one lease. It returns ErrLost if the lock or a part of the
// shadow is gone: the rebuild is then over.
func (r *Rebuild) Renew(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return fmt.Errorf("renew the lease of the rebuild of %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// renew renews the shadow's windows in calls of a few hundred keys, so that a large shadow does not delay
// Redis, then the ledger, schema, origins and listing, and the lock. All keys get the expiry that the first
// call chooses, so no window expires before the ledger. A window that opens meanwhile is in the listing. If
// Redis's clock goes back, such a window may expire before the ledger; the swap then finds it listed but
// missing.
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
	// The call that renews the ledger also renews the listing, if it exists, since a piece may have created
	// it meanwhile. The names, if they exist, live until they are merged into those of the live boards.
	_, err = r.renewed(ctx, swapped, until, append(core, lock, k.Names(), lock, k.Windows(), lock), 4)
	return err
}

// renewedAtOnce is the number of windows that one call renews. Such a call takes Redis about a millisecond.
const renewedAtOnce = 250

// begins reports whether the shadow has a ledger. It returns ErrLost if the shadow had one and has lost it.
func (r *Rebuild) begins(ctx context.Context) (bool, error) {
	st, err := r.shadow.State(ctx)
	if err != nil {
		return false, err
	}
	s := side{schema: st.Schema, ledger: st.Ledger}
	return len(s.ledger) > 0, r.whole(&s)
}

// renewed calls the script for keys, the last of which come in pairs, and returns the time at which they
// expire.
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
			return until, nil // the swap or the removal took place during the call
		}
		return "", fmt.Errorf("%w (%s)", ErrLost, words[1])
	}
	return "", ranking.Unexpected(lua.Keep, reply)
}

// whole returns ErrLost if the shadow has lost its ledger.
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

// Hold stops all ingestion of the shard until Release, a swap, or the end of lease. It returns ErrUnheld if
// another rebuild has the hold, and ErrLost if the lock is lost.
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

// Release ends the hold, if this rebuild still has it.
func (r *Rebuild) Release(ctx context.Context) error {
	if err := r.release(ctx, r.held()); err != nil {
		return fmt.Errorf("let ingestion under %q go on: %w", r.live.Prefix(), err)
	}
	return nil
}

// Close releases the hold and the lock, if this rebuild still has them. Unlink, called before Close,
// removes the rebuild's other keys; without it they expire.
func (r *Rebuild) Close(ctx context.Context) error {
	if err := errors.Join(r.Release(ctx), r.release(ctx, r.locked())); err != nil {
		return fmt.Errorf("let go of the lock of the rebuild of %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// side is the state next to the scores, of the live copy or of the shadow.
type side struct {
	schema          string
	ledger, origins map[string]string
	since           map[string]int64 // of periods that were added, as ledger.State.Since
	windows         int              // number of listed windows
}

// both reads the state next to the live scores and next to the shadow's in one call.
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

// denotes returns the position that a ledger's text denotes once its scores are replaced.
func denotes(text string) string {
	return strings.TrimPrefix(text, ledger.TornMark)
}
