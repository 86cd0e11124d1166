package reshard

// The switch, and what comes after it.

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

// askTime is how long the outcome of the switch is asked for once it is to end.
const askTime = 15 * time.Second

// outlive is a context that ends a while after another.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// switched writes the record, until it is known whether it was.
func (r *run) switched(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	asking, cancel := outlive(ctx, askTime)
	defer cancel()
	record := fmt.Sprint(int(r.To))
	sent := false
	err := tries(asking, func() error {
		reply, err := r.lease.home().Call(asking, lua.Renumber, []string{ranking.NumberKey(r.View.Prefix), ranking.ReshardKey(r.View.Prefix)}, r.lease.text, record, r.before)
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
		return ranking.Unexpected(lua.Renumber, reply)
	})
	r.result.Unsure = sent && err != nil && !errors.Is(err, ErrHeld)
	if err != nil {
		return fmt.Errorf("switch over: %w", err)
	}
	return nil
}

// lost is asked where the lock is gone: the record may have been written by a call before that,
// whose answer never came.
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

// after has the copy stay, and the old shards go.
func (r *run) after(ctx context.Context) error {
	keeping, cancel := outlive(ctx, askTime)
	defer cancel()
	if err := tries(keeping, func() error { return Keep(keeping, r.to) }); err != nil {
		return fmt.Errorf("it has switched over, and the copy isn't complete in that its keys still expire; consumers or the same command again repair that: %w", err)
	}
	r.Watch.Step(Removing)
	if err := retry.Sleep(ctx, r.Linger); err != nil {
		return fmt.Errorf("it has switched over, and the same command again removes what was copied: %w", context.Cause(ctx))
	}
	if err := r.leave(ctx, r.from); err != nil {
		return fmt.Errorf("it has switched over, and the same command again removes what was copied: %w", err)
	}
	return nil
}

// again is a reshard to the number that there is: it finishes one that has switched.
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
		if err := r.leave(ctx, r.View.Sibling(n)); err != nil {
			return err
		}
	}
	if r.result.Removed == 0 {
		return ErrSame
	}
	return nil
}

// leave marks old shards, so that whoever still goes by them is told, and removes what is there.
func (r *run) leave(ctx context.Context, old []*ranking.Store) error {
	mark := ranking.LeftMark(r.To)
	for _, s := range old {
		err := tries(ctx, func() error {
			_, err := s.Call(ctx, lua.Leave, []string{s.Keys().Schema()}, mark)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, s := range old {
		keys, err := keysOf(ctx, s)
		if err != nil {
			return err
		}
		if err := remove(ctx, s, keys, func(n int) { r.result.Removed += n }); err != nil {
			return err
		}
	}
	return nil
}

// keysOf are the keys of a shard, but for its schema and its locks: windows first, and what lists
// them last, so that what is interrupted can be gone on with.
func keysOf(ctx context.Context, s *ranking.Store) (keys []string, err error) {
	var names map[string]string
	if err := tries(ctx, func() (err error) { names, err = s.Listings(ctx); return err }); err != nil {
		return nil, err
	}
	k := s.Keys()
	for name := range names {
		keys = append(keys, k.Listed(name))
	}
	slices.Sort(keys)
	if len(keys) == 0 {
		st, err := s.State(ctx)
		if err != nil || len(st.Ledger) == 0 && len(st.Workers) == 0 {
			return nil, err
		}
	}
	return append(keys, k.Ledger(), k.Origin(), k.Dropped(), k.Workers(), k.Windows()), nil
}

// removePause is between two calls that remove.
const removePause = 2 * time.Millisecond

func remove(ctx context.Context, s *ranking.Store, keys []string, removed func(n int)) error {
	before := 0
	return tries(ctx, func() error {
		return s.Unlink(ctx, keys, removePause, func(n int) {
			if removed != nil && n > before {
				removed(n - before)
				before = n
			}
		})
	})
}

// mark has the shards of the copy be this reshard's: what another has on its way is refused.
func (r *run) mark(ctx context.Context) error {
	for _, s := range r.to {
		err := tries(ctx, func() error {
			_, err := s.Call(ctx, lua.Lock, []string{s.Keys().Copy(), s.Keys().Copy()}, r.lease.text, copyLives.Milliseconds(), "")
			return err
		})
		if err != nil {
			return fmt.Errorf("begin the copy: %w", full(err))
		}
	}
	return nil
}

// clearCopy removes what an earlier reshard has left of a copy, or of shards that were left.
func clearCopy(ctx context.Context, to []*ranking.Store) error {
	for _, s := range to {
		keys, err := keysOf(ctx, s)
		if err != nil {
			return err
		}
		// The mark goes first: what another reshard has on its way is refused from then on.
		keys = append([]string{s.Keys().Copy(), s.Keys().Schema()}, keys...)
		if err := remove(ctx, s, keys, nil); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the copy, as far as that is possible in a while.
func (r *run) forget(ctx context.Context) {
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	if err := clearCopy(going, r.to); err != nil {
		r.Watch.Note(fmt.Sprintf("what was copied expires within a day: %v", err))
	}
}

// Keep has a copy that was switched to stay. The mark that it is a copy goes last: while it is
// there, keys may still expire.
func Keep(ctx context.Context, stores []*ranking.Store) error {
	for _, s := range stores {
		copied, err := s.Copied(ctx)
		if err == nil && copied {
			err = keep(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("keep what was copied: %w", err)
		}
	}
	return nil
}

// keptAtOnce is how many keys a call is for.
const keptAtOnce = 500

func keep(ctx context.Context, s *ranking.Store) error {
	all, err := s.Listings(ctx)
	if err != nil {
		return err
	}
	k := s.Keys()
	var keys []string
	var until []any
	for name, text := range all {
		_, expires, err := ranking.ParseListing(name, text)
		if err != nil {
			return err
		}
		keys, until = append(keys, k.Listed(name)), append(until, expires+ranking.KeyOutlives.Milliseconds())
	}
	for _, key := range []string{k.Windows(), k.Dropped(), k.Origin(), k.Workers(), k.Ledger(), k.Schema()} {
		keys, until = append(keys, key), append(until, "")
	}
	for i := 0; i < len(keys); i += keptAtOnce {
		to := min(len(keys), i+keptAtOnce)
		if _, err := s.Call(ctx, lua.Keep, keys[i:to], until[i:to]...); err != nil {
			return err
		}
	}
	return s.Unlink(ctx, []string{k.Copy()}, 0, nil)
}

// full says what to do where Redis has no room for the copy.
func full(err error) error {
	if !redisconn.IsFull(err) {
		return err
	}
	return fmt.Errorf("Redis has no room for the copy, which needs about as much again as all boards: raise maxmemory (CONFIG SET maxmemory), or remove what isn't used any more (consumer drop --prefix …): %w", err)
}
