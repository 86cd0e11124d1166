package reshard

// The switch, and the steps after it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/retry"
)

// askTime is how long the reshard tries to learn the outcome of the switch after its context has ended.
const askTime = 15 * time.Second

// outlive returns a context that ends the duration by after ctx.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// switched writes the record, and repeats the call until the outcome is known.
func (r *run) switched(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	asking, cancel := outlive(ctx, askTime)
	defer cancel()
	record := fmt.Sprint(int(r.To))
	sent := false
	err := tries(asking, func() error {
		reply, err := r.lease.home().Call(asking, lua.Switch, []string{ranking.NumberKey(r.View.Prefix), ranking.ReshardKey(r.View.Prefix)}, r.lease.text, record, "", r.before)
		words, wrong := ranking.Texts(reply)
		switch {
		case err != nil:
			sent = true
			return err
		case wrong != nil:
			return wrong
		case len(words) == 1 && words[0] == "written":
			r.result.Switched = true
			return nil
		case len(words) == 1 && words[0] == "lost":
			return r.lost(asking)
		case len(words) == 2 && words[0] == "other":
			return ranking.Faultf("the prefix has %s shards by now", words[1])
		}
		return ranking.Unexpected(lua.Switch, reply)
	})
	r.result.Unsure = sent && err != nil && !errors.Is(err, ErrHeld)
	if err != nil {
		return fmt.Errorf("switch over: %w", err)
	}
	return nil
}

// lost is called if the lock is gone: an earlier call may have written the record although its reply was
// lost.
func (r *run) lost(ctx context.Context) error {
	number, err := r.View.Number(ctx)
	if err != nil {
		return err
	}
	if number.Shards == r.To {
		r.result.Switched = true
		return nil
	}
	return ErrHeld
}

// after makes the copy permanent, and marks and removes the old shards. It marks them within moments of the
// switch: until then readers of the old shards show members that were banned since.
func (r *run) after(ctx context.Context) error {
	keeping, cancel := outlive(ctx, askTime)
	defer cancel()
	if err := tries(keeping, func() error { return Keep(keeping, r.to) }); err != nil {
		return fmt.Errorf("it has switched over, and the copy isn't complete in that its keys still expire; consumers or the same command again repair that: %w", err)
	}
	err := r.leftMarks(keeping, r.from)
	if err == nil {
		r.Watch.Step(Removing)
		err = r.discardLeft(ctx, r.from)
	}
	if err != nil {
		return fmt.Errorf("it has switched over, and the same command again removes what was copied: %w", err)
	}
	return nil
}

// again handles a reshard to the current number of shards: it finishes an earlier one that has switched.
func (r *run) again(ctx context.Context) error {
	number, err := r.View.Number(ctx)
	if err != nil {
		return err
	}
	if number.Shards == 0 {
		return ErrSame
	}
	if r.lease, err = take(ctx, r.Job, r.from); err != nil {
		return err
	}
	defer r.lease.end()
	if err := Keep(ctx, r.from); err != nil {
		return err
	}
	r.Watch.Step(Removing)
	left, err := r.View.Left(ctx)
	if err != nil {
		return err
	}
	for _, n := range left {
		old := r.View.Sibling(n)
		if err := r.lease.hold(ctx, old); err != nil {
			return err
		}
		err := r.leftMarks(ctx, old)
		if err == nil {
			err = r.discardLeft(ctx, old)
		}
		if err := errors.Join(err, r.lease.release(ctx, old)); err != nil {
			return err
		}
	}
	if r.result.Removed == 0 {
		return ErrSame
	}
	return nil
}

// leftMarks marks old shards, which are held, as left, so that processes that still use them are refused.
func (r *run) leftMarks(ctx context.Context, old []*ranking.Store) error {
	mark := ranking.LeftMark(r.To)
	for _, s := range old {
		err := tries(ctx, func() error {
			reply, err := s.Call(ctx, lua.Switch, []string{s.Keys().Schema(), s.Keys().Hold()}, r.lease.text, mark, "")
			if err == nil && (len(reply) != 1 || reply[0] != "written") {
				err = fmt.Errorf("%w (%s)", ErrHeld, s.Keys().Hold())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) discardLeft(ctx context.Context, old []*ranking.Store) error {
	for _, s := range old {
		keys, err := keysOf(ctx, s)
		if err != nil {
			return err
		}
		n, err := r.discard(ctx, s, s.Keys().Hold(), keys)
		r.result.Removed += n
		if err != nil {
			return err
		}
	}
	return nil
}

// keysOf returns the keys of a shard except its schema and locks: windows first and the keys that list them
// last, so that an interrupted removal can be continued.
func keysOf(ctx context.Context, s *ranking.Store) (keys []string, err error) {
	var names map[string]string
	if err := tries(ctx, func() (err error) { names, err = s.Listings(ctx); return err }); err != nil {
		return nil, err
	}
	k := s.Keys()
	for name := range names {
		shown, hidden := k.Both(name)
		keys = append(keys, shown, hidden)
	}
	slices.Sort(keys)
	if len(keys) == 0 {
		st, err := s.State(ctx)
		if err != nil {
			return nil, err
		}
		if len(st.Ledger) == 0 && len(st.Workers) == 0 {
			return []string{k.Banned()}, nil // members may be banned before any event is counted
		}
	}
	return append(keys, k.Ledger(), k.Origin(), k.Rules(), k.Dropped(), k.Borders(), k.Final(), k.Names(), k.Banned(), k.Workers(), k.Windows()), nil
}

const (
	// discardPause is the pause between calls that each remove discardedAtOnce keys.
	discardPause    = 2 * time.Millisecond
	discardedAtOnce = 500
)

// discard removes keys of a shard while this reshard has one of its locks. So a reshard that was paused and
// replaced by another removes nothing that was written since.
func (r *run) discard(ctx context.Context, s *ranking.Store, lock string, keys []string) (removed int, err error) {
	for some := range slices.Chunk(keys, discardedAtOnce) {
		err := tries(ctx, func() error {
			reply, err := s.Call(ctx, lua.Keep, append([]string{lock}, some...), r.lease.text, "none", "remove")
			switch {
			case err != nil:
				return err
			case len(reply) == 3 && reply[0] == "kept":
				n, _ := reply[2].(int64)
				removed += int(n)
				return nil
			case len(reply) == 2 && reply[0] == "lost":
				return fmt.Errorf("%w (%s)", ErrHeld, lock)
			}
			return ranking.Unexpected(lua.Keep, reply)
		})
		if err == nil {
			err = retry.Sleep(ctx, discardPause)
		}
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// mark marks the shards of the copy as this reshard's, so that writes still in flight from another reshard
// are refused. It first reads the present marks, and then checks that this reshard still has the lock. So
// any other reshard whose mark it replaces had lost the lock, and cannot switch to these shards.
func (r *run) mark(ctx context.Context) error {
	was := make([]string, len(r.to))
	for i, s := range r.to {
		if err := tries(ctx, func() (err error) { was[i], err = s.CopyOf(ctx); return err }); err != nil {
			return err
		}
	}
	if err := tries(ctx, func() error { return r.lease.prolong(ctx) }); err != nil {
		return err
	}
	number, err := r.View.Number(ctx)
	if err != nil {
		return err
	}
	if number.Shards == r.To {
		return ErrHeld // another reshard has switched meanwhile
	}
	for i, s := range r.to {
		err := tries(ctx, func() error {
			reply, err := s.Call(ctx, lua.Switch, []string{s.Keys().Copy(), s.Keys().Copy(), s.Keys().Schema()}, "", r.lease.text, copyLives.Milliseconds(), was[i])
			switch {
			case err != nil:
				return err
			case len(reply) == 1 && reply[0] == "written":
				return nil
			case len(reply) == 1 && reply[0] == "stands":
				return &StandsError{r.View.Prefix, r.To}
			case len(reply) == 2 && reply[0] == "other":
				return fmt.Errorf("%w (%s)", ErrHeld, s.Keys().Copy())
			}
			return ranking.Unexpected(lua.Switch, reply)
		})
		if err != nil {
			return fmt.Errorf("begin the copy: %w", full(err))
		}
	}
	return nil
}

// clear removes, from the shards that carry this reshard's mark, the remains of earlier copies and of
// shards that were left.
func (r *run) clear(ctx context.Context) error {
	for _, s := range r.to {
		keys, err := keysOf(ctx, s)
		if err != nil {
			return err
		}
		if _, err := r.discard(ctx, s, s.Keys().Copy(), append([]string{s.Keys().Schema()}, keys...)); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the copy and its marks, as far as possible within askTime.
func (r *run) forget(ctx context.Context) {
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	err := r.clear(going)
	if errors.Is(err, ErrHeld) {
		return // nothing was marked, or another reshard has replaced the mark
	}
	for _, s := range r.to {
		if err == nil {
			err = ranking.ReleaseLocks(going, []*ranking.Store{s}, []ranking.Lock{{Key: s.Keys().Copy(), Holds: r.lease.text}})
		}
	}
	if err != nil {
		r.Watch.Note(fmt.Sprintf("what was copied expires within a day: %v", err))
	}
}

// Keep makes a copy permanent after the switch. It removes the mark of the copy last: while the mark
// exists, keys may still expire.
func Keep(ctx context.Context, stores []*ranking.Store) error {
	for _, s := range stores {
		copied, err := s.CopyOf(ctx)
		if err == nil && copied != "" {
			err = keep(ctx, s, copied)
		}
		if err != nil {
			return fmt.Errorf("keep what was copied: %w", err)
		}
	}
	return nil
}

// keptAtOnce is the number of keys that one call makes permanent.
const keptAtOnce = 500

func keep(ctx context.Context, s *ranking.Store, copied string) error {
	all, err := s.Listings(ctx)
	if err != nil {
		return err
	}
	k := s.Keys()
	var keys []string
	var until []any
	for name, text := range all {
		l, err := ranking.ParseListing(name, text)
		if err != nil {
			return err
		}
		shown, hidden := k.Both(name)
		expires := l.Expires + ranking.KeyOutlives.Milliseconds()
		keys, until = append(keys, shown, hidden), append(until, expires, expires)
	}
	for _, key := range []string{k.Windows(), k.Dropped(), k.Borders(), k.Final(), k.Names(), k.Banned(), k.Origin(), k.Rules(), k.Workers(), k.Ledger(), k.Schema()} {
		keys, until = append(keys, key), append(until, "")
	}
	for i := 0; i < len(keys); i += keptAtOnce {
		to := min(len(keys), i+keptAtOnce)
		reply, err := s.Call(ctx, lua.Keep, append([]string{k.Copy()}, keys[i:to]...), append([]any{copied, "none", "each", 0}, until[i:to]...)...)
		if err != nil {
			return err
		}
		if len(reply) == 2 && reply[0] == "lost" {
			return nil // another process has done it meanwhile
		}
	}
	return s.Unlink(ctx, []string{k.Copy()}, 0, nil)
}

// full adds the remedy to an error that reports that Redis has no memory for the copy.
func full(err error) error {
	if !redisconn.IsFull(err) {
		return err
	}
	return fmt.Errorf("Redis has no room for the copy, which needs about as much again as all boards: raise maxmemory (CONFIG SET maxmemory), or remove what isn't used any more (consumer drop --prefix …): %w", err)
}
