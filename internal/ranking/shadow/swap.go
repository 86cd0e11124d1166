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

// MovedError says that the live ledger and the shadow's don't stand at the very same
// positions. Nothing was changed: the shadow has to go on to where the live one is.
type MovedError struct {
	Field        string // one that differs; empty where one side has others
	Live, Shadow string // its texts
}

func (e *MovedError) Error() string {
	if e.Field == "" {
		return "the live ledger has other partitions than the rebuild's"
	}
	return fmt.Sprintf("%s is at %q, and the rebuild at %q", e.Field, e.Live, e.Shadow)
}

// Swap puts the shadow in the place of the live boards, in one call, or changes nothing:
// *MovedError and ErrUnheld say that it may be tried again, ErrLost and *RefusedError that
// it may not. It takes the hold, and ends it. After an error with an unknown outcome (see
// Classify) it can be called again.
func (r *Rebuild) Swap(ctx context.Context, c Choice) (*Plan, error) {
	return r.replace(ctx, c, (*Plan).ready)
}

// ErrKeeps says that a plan keeps windows that take events.
var ErrKeeps = errors.New("windows that take events are kept")

// ErrListed says that more is listed than was planned for. Nothing was changed.
var ErrListed = errors.New("a window was listed meanwhile")

// TakeOver is like Swap, but needs no hold. The shadow's ledger may be behind the live one; consumers then continue
// from there. ErrKeeps says that some window that takes events would be kept, which is for Swap. After ErrListed,
// *MovedError and ErrUnheld it can be called again.
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
	if errors.Is(err, errSwapped) && last != nil { // and the answer was lost
		r.mu.Lock()
		defer r.mu.Unlock()
		r.swapped, r.unsure = true, false
		return last, nil
	}
	if err == nil {
		if err = ready(p); err == nil {
			err = r.swapBy(ctx, p)
		} else {
			r.sure(true) // it was looked at: nothing has moved
		}
	}
	if err != nil {
		return nil, fmt.Errorf("swap the boards of %q: %w", r.live.Prefix(), err)
	}
	return p, nil
}

// Unsure reports whether a swap was sent whose outcome nobody knows: no answer has come,
// or the script died, perhaps midway.
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

// errSwapped says that the shadow has taken the live boards' place.
var errSwapped = errors.New("the boards are swapped")

// swappedMark is what the shadow's schema is then.
const swappedMark = "swapped"

// ready reports why a plan can't be carried out now.
func (p *Plan) ready() error {
	if len(p.Refused) > 0 {
		return &RefusedError{p.Refused}
	}
	return p.apart()
}

// readyToTakeOver reports why a plan can't be carried out without a hold. The script compares the ledgers.
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

// Keeps reports whether the plan keeps a window that takes events.
func (p *Plan) Keeps() bool {
	return slices.ContainsFunc(p.Windows, func(w Planned) bool { return w.Action == Kept && !w.final })
}

// apart reports where the two ledgers differ.
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

// swapBy has the shadow hide who is banned by now, which changes little under the hold, and swaps.
func (r *Rebuild) swapBy(ctx context.Context, p *Plan) error {
	version, err := r.takeBans(ctx)
	if err != nil {
		r.sure(true) // nothing has moved
		return err
	}
	return r.swap(ctx, p, version)
}

// takeBans has the shadow hide who is banned on the live boards. The shadow has a hash of its own
// for that, so that each of its standings is where that says, whatever becomes of the live one
// meanwhile. It returns the version of the live hash that the shadow's is by, at least.
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

// markFor is how long the mark lives by which a swap is known to have been done.
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
		// What a server answers that may pass, it answers before a script's first write.
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
	case "banned": // while the hold had lapsed
		return fmt.Errorf("%w: somebody was banned, or shown again", ErrUnheld)
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

// Unlink removes what the rebuild leaves behind, a few hundred keys at a time with a pause
// after each: Redis frees them in the background, and is to notice little of it. It is
// called once the shadow isn't written any more. Between two pauses it heeds the context's
// end; what is left then expires.
func (r *Rebuild) Unlink(ctx context.Context, pause time.Duration) error {
	if err := r.remove(ctx, pause); err != nil {
		return fmt.Errorf("remove what the rebuild of %q leaves behind: %w", r.live.Prefix(), ofShard(r.live, err))
	}
	return nil
}

func (r *Rebuild) remove(ctx context.Context, pause time.Duration) error {
	r.mu.Lock()
	r.leaving = true // the lock is renewed meanwhile, and nothing else
	r.mu.Unlock()
	shadow, err := r.shadow.Listings(ctx)
	if err != nil {
		return err
	}
	k := r.shadow.Keys()
	// The ledger first: without it no piece that is still on its way is written.
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
