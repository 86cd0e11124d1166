package ranking

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
	return fmt.Sprintf("%s stands at %q, and the rebuild at %q", e.Field, e.Live, e.Shadow)
}

// Swap puts the shadow in the place of the live boards, in one call, or changes nothing:
// *MovedError and ErrUnheld say that it may be tried again, ErrLost and *RefusedError that
// it may not. It takes the hold, and ends it. After an error with an unknown outcome (see
// Meaning) it can be called again.
func (r *Rebuild) Swap(ctx context.Context, c Choice) (*Plan, error) {
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
		if err = p.ready(); err == nil {
			err = r.swap(ctx, p)
		} else {
			r.sure(true) // it was looked at: nothing has moved
		}
	}
	if err != nil {
		return nil, fmt.Errorf("swap the boards of %q: %w", r.live.prefix, err)
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

// asideFor is how long what was replaced lives on if nobody unlinks it.
const asideFor = 10 * time.Minute

func (r *Rebuild) swap(ctx context.Context, p *Plan) error {
	live, shadow := r.live.keys, r.shadow.keys
	args := []any{nil, nil, nil, live.hold(), live.rebuild(), live.ledger(), live.schema(), live.origin(), live.windows(),
		shadow.ledger(), shadow.schema(), shadow.windows()}
	var windows []any
	r.mu.Lock()
	for i := range p.Windows {
		w := &p.Windows[i]
		if w.Fate != Replaced && w.Fate != Dropped {
			continue
		}
		name := w.Listing()
		aside := live.aside(r.id, name)
		args = append(args, live.listed(name), shadow.listed(name), aside)
		expires := any("")
		if w.listing != "" {
			expires = w.expires
		}
		windows = append(windows, name, w.listing, expires)
		r.left[aside] = true
	}
	r.last = p
	r.mu.Unlock()
	keys := len(args) - 3
	args = append(args, r.id, r.lock, r.live.schema, asideFor.Milliseconds(), p.listed, len(p.Shadow))
	for _, field := range slices.Sorted(maps.Keys(p.Shadow)) {
		args = append(args, field, p.Live[field], p.Shadow[field], p.origins[field])
	}
	reply, err := r.live.run(ctx, swapScript, keys, append(args, windows...))
	if err != nil {
		// What a server answers that may pass, it answers before a script's first write.
		_, answered := errors.AsType[redis.Error](err)
		r.sure(answered && Meaning(err) == ledger.Retry)
		return err
	}
	r.sure(true)
	return r.swapAnswer(reply)
}

func (r *Rebuild) swapAnswer(reply []any) error {
	words, err := texts(reply)
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
	case "unlocked":
		return ErrLost
	case "damaged":
		return fmt.Errorf("%w (%s)", ErrLost, rest[1])
	case "schema":
		return &SchemaError{Prefix: r.live.prefix, Wanted: r.live.schema, Found: rest[1]}
	case "moved":
		return &MovedError{Field: rest[1], Live: rest[2], Shadow: rest[3]}
	}
	return faultf("an unexpected reply: %q", words)
}

// Unlink removes what the rebuild leaves behind, the shadow and what was replaced, one key
// a call with a pause between two: Redis frees them in the background, and is to notice
// little of it. It is called once the shadow isn't written any more. progress, which may
// be nil, is told how many keys of how many are gone.
func (r *Rebuild) Unlink(ctx context.Context, pause time.Duration, progress func(done, all int)) error {
	fail := func(err error) error {
		return fmt.Errorf("remove what the rebuild of %q leaves behind: %w", r.live.prefix, err)
	}
	_, shadow, err := r.both(ctx)
	if err != nil {
		return fail(err)
	}
	k := r.shadow.keys
	// The ledger first: without it no piece that is still on its way is written.
	all := []string{k.ledger()}
	for _, name := range slices.Sorted(maps.Keys(shadow.windows)) {
		all = append(all, k.listed(name))
	}
	r.mu.Lock()
	all = append(all, slices.Sorted(maps.Keys(r.left))...)
	r.mu.Unlock()
	all = append(all, k.windows(), k.origin(), k.schema())
	for i, key := range all {
		if err := r.live.unlink(ctx, key); err != nil {
			return fail(err)
		}
		if progress != nil {
			progress(i+1, len(all))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fail(context.Cause(ctx))
		}
	}
	return nil
}

func (s *Store) unlink(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return asRights(s.client.Unlink(ctx, key).Err(), "", s.prefix)
}
