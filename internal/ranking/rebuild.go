package ranking

// A rebuild's side of Redis: the lock that makes it the only one, its shadow, and the
// hold under which it swaps. Whatever it has ends by itself, all at the same moment, when
// the rebuild does.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// Rebuild is a rebuild under way: it has the lock. It is safe for concurrent use.
type Rebuild struct {
	live   *Store
	shadow *Store
	id     string
	lock   string // what the lock holds while it is ours
	lease  time.Duration

	mu      sync.Mutex
	begun   bool // the shadow was seen to have a ledger
	swapped bool
	leaving bool  // the shadow is being removed, which isn't its loss
	unsure  bool  // a swap was sent, and no answer of the script has come
	last    *Plan // that was tried to be carried out
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

// Rebuild takes the lock, for an owner that others are told of. All that the rebuild has
// in Redis lives for lease unless Renew is called, well within it: at a third, say.
// *BusyError says that another is rebuilding.
func (s *Store) Rebuild(ctx context.Context, owner string, lease time.Duration) (*Rebuild, error) {
	id := strings.ToLower(rand.Text())
	text, err := json.Marshal(lockText{Token: id, Owner: owner, Began: time.Now().UTC().Truncate(time.Millisecond)})
	if err != nil {
		return nil, fmt.Errorf("take the lock of a rebuild of %q: %w", s.prefix, err)
	}
	r := &Rebuild{live: s, shadow: s.shadow(id, lease), id: id, lock: string(text), lease: lease}
	busy, left, err := s.take(ctx, s.keys.rebuild(), r.lock, lease, s.keys.rebuild(), "")
	if err != nil {
		return nil, fmt.Errorf("take the lock of a rebuild of %q: %w", s.prefix, err)
	}
	if busy != "" {
		e := &BusyError{Prefix: s.prefix, Owner: "someone", Until: time.Now().Add(left)}
		var other lockText
		if json.Unmarshal([]byte(busy), &other) == nil {
			e.Owner, e.Began = other.Owner, other.Began
		}
		return nil, e
	}
	return r, nil
}

// take takes a lock, if another one is ours. busy is what it holds instead, for as long
// as left.
func (s *Store) take(ctx context.Context, key, value string, lease time.Duration, ours, is string) (busy string, left time.Duration, err error) {
	reply, err := s.run(ctx, lockScript, 2, []any{nil, nil, nil, key, ours, value, lease.Milliseconds(), is})
	if err != nil {
		return "", 0, err
	}
	switch {
	case len(reply) == 1 && reply[0] == "taken":
		return "", 0, nil
	case len(reply) == 1 && reply[0] == "lost":
		return "", 0, ErrLost
	case len(reply) == 3 && reply[0] == "busy":
		busy, _ = reply[1].(string)
		ms, _ := reply[2].(int64)
		return busy, time.Duration(max(ms, 0)) * time.Millisecond, nil
	}
	return "", 0, faultf("an unexpected reply: %v", reply)
}

func (s *Store) release(ctx context.Context, key, value string) error {
	_, err := s.run(ctx, releaseScript, 1, []any{nil, nil, nil, key, value})
	return err
}

// Shadow is where the log is folded into: a store like the live one, with a ledger of its
// own. Every Beginning there has an origin.
func (r *Rebuild) Shadow() *Store { return r.shadow }

// Renew lets the lock and all of the shadow live on for a lease. ErrLost says that there
// is nothing left that could: the rebuild is over.
func (r *Rebuild) Renew(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return fmt.Errorf("renew the lease of the rebuild of %q: %w", r.live.prefix, err)
	}
	return nil
}

// renew goes through the shadow's windows some hundred a call, so that Redis hardly
// notices however many there are, and ends with what says that they are there, and the
// lock. All get the moment that is chosen at first: so no window goes before the ledger
// does. Windows that are opened meanwhile get a later one.
func (r *Rebuild) renew(ctx context.Context) error {
	k, lock := r.shadow.keys, r.live.keys.rebuild()
	r.mu.Lock()
	swapped := r.swapped || r.leaving
	r.mu.Unlock()
	var core []string
	if !swapped {
		begun, err := r.begins(ctx)
		if err != nil {
			return err
		}
		if begun {
			core = []string{k.origin(), k.schema(), k.ledger()}
		}
	}
	until, err := r.renewed(ctx, swapped, "", core)
	if err != nil {
		return err
	}
	if core != nil {
		err := r.shadow.steady(ctx, func() error {
			for page, err := range r.shadow.listings(ctx, 0) {
				if err != nil {
					return err
				}
				var windows []string
				for i := 0; i < len(page); i += 2 {
					windows = append(windows, k.listed(page[i]))
				}
				if len(windows) > 0 {
					if _, err := r.renewed(ctx, swapped, until, append(windows, k.windows())); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err = r.renewed(ctx, swapped, until, append(core, lock))
	return err
}

// begins reports whether the shadow has a ledger; that it has lost it is ErrLost.
func (r *Rebuild) begins(ctx context.Context) (bool, error) {
	st, err := r.shadow.State(ctx)
	if err != nil {
		return false, err
	}
	s := side{schema: st.Schema, ledger: st.Ledger}
	return len(s.ledger) > 0, r.whole(&s)
}

// renewed calls the script for some keys, and returns until when they live.
func (r *Rebuild) renewed(ctx context.Context, swapped bool, until string, keys []string) (string, error) {
	args := []any{nil, nil, nil, r.live.keys.rebuild()}
	for _, key := range keys {
		args = append(args, key)
	}
	reply, err := r.live.run(ctx, renewScript, len(args)-3, append(args, r.lock, until, r.lease.Milliseconds()))
	if err != nil {
		return "", err
	}
	words, err := texts(reply)
	switch {
	case err != nil:
		return "", err
	case len(words) == 2 && words[0] == "renewed":
		return words[1], nil
	case len(words) == 2 && words[0] == "lost":
		r.mu.Lock()
		defer r.mu.Unlock()
		if (r.swapped || r.leaving) && !swapped {
			return until, nil // meanwhile
		}
		return "", fmt.Errorf("%w (%s)", ErrLost, words[1])
	}
	return "", faultf("an unexpected reply: %q", words)
}

// whole reports that the shadow has lost its ledger.
func (r *Rebuild) whole(shadow *side) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(shadow.ledger) > 0 {
		r.begun = true
	} else if r.begun && !r.swapped && !r.leaving && shadow.schema != swappedMark {
		return fmt.Errorf("%w (%s)", ErrLost, r.shadow.keys.ledger())
	}
	return nil
}

// Hold stops all ingestion of the shard until it is released, swapped, or lease is over.
// ErrUnheld says that it is held by another, ErrLost that the lock is lost.
func (r *Rebuild) Hold(ctx context.Context, lease time.Duration) error {
	busy, left, err := r.live.take(ctx, r.live.keys.hold(), r.id, lease, r.live.keys.rebuild(), r.lock)
	if err == nil && busy != "" {
		err = fmt.Errorf("%w (for another %v)", ErrUnheld, left)
	}
	if err != nil {
		return fmt.Errorf("hold up ingestion under %q: %w", r.live.prefix, err)
	}
	return nil
}

// Release ends the hold, if it is still ours.
func (r *Rebuild) Release(ctx context.Context) error {
	if err := r.live.release(ctx, r.live.keys.hold(), r.id); err != nil {
		return fmt.Errorf("let ingestion under %q go on: %w", r.live.prefix, err)
	}
	return nil
}

// Close lets go of the hold and the lock, if they are still ours. What the rebuild leaves
// behind is for Unlink, before, or expires.
func (r *Rebuild) Close(ctx context.Context) error {
	if err := errors.Join(r.Release(ctx), r.live.release(ctx, r.live.keys.rebuild(), r.lock)); err != nil {
		return fmt.Errorf("let go of the lock of the rebuild of %q: %w", r.live.prefix, err)
	}
	return nil
}

// side is what stands beside scores: live ones, or a shadow's.
type side struct {
	schema                   string
	ledger, origins, windows map[string]string
}

// both reads what stands beside the live scores and the shadow's, as of one moment.
func (r *Rebuild) both(ctx context.Context) (live, shadow side, err error) {
	live, shadow, _, err = r.bothAt(ctx)
	return live, shadow, err
}

func (r *Rebuild) bothAt(ctx context.Context) (live, shadow side, now int64, err error) {
	args := []any{nil, nil, nil}
	for _, k := range []keys{r.live.keys, r.shadow.keys} {
		args = append(args, k.ledger(), k.schema(), k.origin(), k.windows())
	}
	reply, err := r.live.run(ctx, bothScript, 8, args)
	if err != nil {
		return side{}, side{}, 0, err
	}
	if len(reply) != 3 {
		return side{}, side{}, 0, faultf("an unexpected reply of %d elements", len(reply))
	}
	if now, err = wholeNumber(reply[0]); err != nil {
		return side{}, side{}, 0, err
	}
	for i, into := range []*side{&live, &shadow} {
		if *into, err = readSide(reply[i+1]); err != nil {
			return side{}, side{}, 0, err
		}
	}
	return live, shadow, now, nil
}

func readSide(reply any) (s side, err error) {
	all, ok := reply.([]any)
	if !ok || len(all) != 4 {
		return side{}, faultf("an unexpected reply: %T", reply)
	}
	s.schema, _ = all[0].(string)
	for i, into := range []*map[string]string{&s.ledger, &s.origins, &s.windows} {
		if *into, err = fields(all[i+1]); err != nil {
			return side{}, err
		}
	}
	return s, nil
}

// denotes is the position that a ledger's text stands for once its scores are replaced.
func denotes(text string) string {
	return strings.TrimPrefix(text, ledger.TornMark)
}
