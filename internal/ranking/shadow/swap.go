package shadow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

// MovedError reports that the live ledger and the shadow's differ. Nothing was changed: the shadow must
// first be brought to the live ledger's positions.
type MovedError struct {
	Field        string // a field that differs; empty if the two sides have different fields
	Live, Shadow string // the field's texts
}

func (e *MovedError) Error() string {
	if e.Field == "" {
		return "the live ledger has other partitions than the rebuild's"
	}
	return fmt.Sprintf("%s is at %q, and the rebuild at %q", e.Field, e.Live, e.Shadow)
}

// Swap replaces the live boards with the shadow in one call, or changes nothing. It requires the hold, and
// ends it. After *MovedError and ErrUnheld the caller may try again; after ErrLost and *RefusedError it
// must not. After an error with an unknown outcome (see Classify) Swap can be called again.
func (r *Rebuild) Swap(ctx context.Context, c Choice) (*Plan, error) {
	return r.replace(ctx, c, (*Plan).ready)
}

// ErrKeeps reports that a plan keeps windows that accept events.
var ErrKeeps = errors.New("windows that take events are kept")

// ErrListed reports that more windows are listed than the plan knows. Nothing was changed.
var ErrListed = errors.New("a window was listed meanwhile")

// TakeOver is like Swap, but needs no hold. The shadow's ledger may be behind the live one; consumers then
// continue from there. ErrKeeps reports that the plan keeps a window that accepts events, which requires
// Swap. After ErrListed, *MovedError and ErrUnheld it can be called again.
func (r *Rebuild) TakeOver(ctx context.Context, c Choice) (*Plan, error) {
	return r.replace(ctx, c, (*Plan).readyToTakeOver)
}

func (r *Rebuild) replace(ctx context.Context, c Choice, ready func(*Plan) error) (*Plan, error) {
	r.mu.Lock()
	swapped, last := r.swapped, r.last
	r.mu.Unlock()
	if swapped {
		return last, nil
	}
	p, err := r.plan(ctx, c)
	if errors.Is(err, errSwapped) && last != nil { // an earlier swap succeeded, and its reply was lost
		r.mu.Lock()
		defer r.mu.Unlock()
		r.swapped, r.unsure = true, false
		return last, nil
	}
	if err == nil {
		if err = ready(p); err == nil {
			err = r.swapBy(ctx, p)
		} else {
			r.sure(true) // the plan has read both ledgers: no swap took place
		}
	}
	if err != nil {
		return nil, fmt.Errorf("swap the boards of %q: %w", r.live.Prefix(), err)
	}
	return p, nil
}

// Unsure reports whether a swap was sent with an unknown outcome: the reply was lost, or the script died,
// perhaps after some writes.
func (r *Rebuild) Unsure() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unsure
}

func (r *Rebuild) sure(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsure = !is
}

// errSwapped reports that the shadow has already replaced the live boards.
var errSwapped = errors.New("the boards are swapped")

// swappedMark is the shadow's schema after a swap.
const swappedMark = "swapped"

// ready returns an error if the plan cannot be carried out now.
func (p *Plan) ready() error {
	if len(p.Refused) > 0 {
		return &RefusedError{p.Refused}
	}
	return p.apart()
}

// readyToTakeOver returns an error if the plan cannot be carried out without a hold. The script compares
// the ledgers.
func (p *Plan) readyToTakeOver() error {
	if len(p.Refused) > 0 {
		return &RefusedError{p.Refused}
	}
	if p.Keeps() {
		return ErrKeeps
	}
	p.takesOver = true
	return nil
}

// Keeps reports whether the plan keeps a window that accepts events.
func (p *Plan) Keeps() bool {
	return slices.ContainsFunc(p.Windows, func(w Planned) bool { return w.Action == Kept && !w.final })
}

// apart returns a *MovedError if the two ledgers differ.
func (p *Plan) apart() error {
	if len(p.Shadow) == 0 {
		return new(MovedError)
	}
	if p.Orphaned {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(p.Live)) {
		if at := p.Live[field]; denotes(at) != p.Shadow[field] {
			return &MovedError{Field: field, Live: at, Shadow: p.Shadow[field]}
		}
	}
	if len(p.Live) != len(p.Shadow) {
		return new(MovedError)
	}
	return nil
}

// swapBy updates the shadow's bans, which changes few standings under the hold, and swaps.
func (r *Rebuild) swapBy(ctx context.Context, p *Plan) error {
	version, err := r.takeBans(ctx)
	if err != nil {
		r.sure(true) // no swap was sent
		return err
	}
	return r.swap(ctx, p, version)
}

// takeBans hides in the shadow the members that are banned on the live boards. The shadow has its own hash
// of bans, and its standings are placed by that hash, independent of later changes to the live one.
// takeBans returns the version of the live hash that the shadow includes at least.
func (r *Rebuild) takeBans(ctx context.Context) (version string, err error) {
	r.mu.Lock()
	last := r.taken
	r.mu.Unlock()
	taken, changed, err := r.shadow.TakeBans(ctx, r.live, last)
	if changed {
		r.bans.Store(true)
	}
	if err != nil {
		return "", fmt.Errorf("hide who is banned: %w", err)
	}
	r.mu.Lock()
	r.taken = taken
	r.mu.Unlock()
	return taken.Live, nil
}

// markFor is the lifetime of the mark by which a later call recognises that the swap was done.
const markFor = 10 * time.Minute

func (r *Rebuild) swap(ctx context.Context, p *Plan, version string) error {
	live, shadow := r.live.Keys(), r.shadow.Keys()
	keys := []string{live.Hold(), live.Rebuild(), live.Ledger(), live.Schema(), live.Origin(), live.Windows(),
		shadow.Ledger(), shadow.Schema(), shadow.Windows(), live.Dropped(), live.Banned(), live.Final(), live.Workers()}
	var windows []any
	for i := range p.Windows {
		if w := &p.Windows[i]; w.Action == Replaced || w.Action == Dropped {
			name := w.Listing()
			shown, hidden := live.Both(name)
			rebuilt, hides := shadow.Both(name)
			keys = append(keys, shown, hidden, rebuilt, hides)
			windows = append(windows, w.listing)
		}
	}
	r.mu.Lock()
	r.last = p
	r.mu.Unlock()
	hold := r.id
	if p.takesOver {
		hold = ""
	}
	args := []any{hold, r.lock, r.live.Schema(), markFor.Milliseconds(), p.listed, len(p.Shadow), version, len(p.since), p.liveListed}
	for _, field := range slices.Sorted(maps.Keys(p.Shadow)) {
		args = append(args, field, p.Live[field], p.Shadow[field], p.origins[field])
	}
	for _, key := range slices.Sorted(maps.Keys(p.since)) {
		args = append(args, ranking.SinceField(key), p.since[key])
	}
	reply, err := r.live.Call(ctx, lua.Swap, keys, append(args, windows...)...)
	if err != nil {
		// Redis returns a transient error only before the script's first write.
		_, answered := errors.AsType[redis.Error](err)
		r.sure(answered && Classify(err) == ledger.Retry)
		return err
	}
	r.sure(true)
	return r.swapAnswer(reply)
}

func (r *Rebuild) swapAnswer(reply []any) error {
	words, err := ranking.Texts(reply)
	if err != nil {
		return err
	}
	switch rest := append(words, "", "", ""); strings.Join(words[:min(1, len(words))], "") {
	case "swapped":
		r.mu.Lock()
		r.swapped = true
		r.mu.Unlock()
		return nil
	case "unheld":
		return ErrUnheld
	case "again":
		r.mu.Lock()
		r.read = nil
		r.mu.Unlock()
		return ErrListed
	case "banned": // the hold had lapsed, or TakeOver runs without one
		return fmt.Errorf("%w: a member was banned or unbanned", ErrUnheld)
	case "unlocked":
		return ErrLost
	case "damaged":
		return fmt.Errorf("%w (%s)", ErrLost, rest[1])
	case "schema":
		return &ranking.SchemaError{Prefix: r.live.Prefix(), Wanted: r.live.Schema(), Found: rest[1]}
	case "moved":
		return &MovedError{Field: rest[1], Live: rest[2], Shadow: rest[3]}
	}
	return ranking.Unexpected(lua.Swap, reply)
}

// Unlink removes the rebuild's keys, a few hundred at a time with a pause after each call, so that Redis,
// which frees them in the background, is not slowed down. The caller must have stopped writing to the
// shadow. If ctx ends between two calls, Unlink stops, and the remaining keys expire.
func (r *Rebuild) Unlink(ctx context.Context, pause time.Duration) error {
	if err := r.remove(ctx, pause); err != nil {
		return fmt.Errorf("remove what the rebuild of %q leaves behind: %w", r.live.Prefix(), r.live.OfShard(err))
	}
	return nil
}

func (r *Rebuild) remove(ctx context.Context, pause time.Duration) error {
	r.mu.Lock()
	r.leaving = true // from now on only the lock is renewed
	r.mu.Unlock()
	shadow, err := r.shadow.Listings(ctx)
	if err != nil {
		return err
	}
	k := r.shadow.Keys()
	// The ledger is removed first: without it, pieces still in flight write nothing.
	if err := r.live.Unlink(ctx, []string{k.Ledger()}, 0, nil); err != nil {
		return err
	}
	if err := r.nameMembers(ctx); err != nil {
		return err
	}
	var all []string
	for name := range shadow {
		shown, hidden := k.Both(name)
		all = append(all, shown, hidden)
	}
	return r.live.Unlink(ctx, append(all, k.Names(), k.Banned(), k.Windows(), k.Origin(), k.Schema()), pause, nil)
}
