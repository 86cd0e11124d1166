package inventory

// Removes everything under a prefix.
//
// The order of removal makes a partial removal harmless. The ledgers of all shards go first, so that no
// piece in flight is written any more. The schemas go next, so that readers find no standings. The listings
// go last: while a shard has windows but no ledger, a consumer that starts under the prefix halts
// ("orphaned") instead of counting on top of the remains. Another drop continues where this one stopped.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/retry"
)

// turn returns in which step a key is removed, from 0.
func turn(key string) int {
	switch nameOf(key) {
	case "ledger":
		return 0
	case "schema":
		return 1
	case "windows":
		return 3
	}
	return 2
}

// ReportEvery is the longest time between two status lines of a worker.
const ReportEvery = time.Second

// Moves reports whether a ledger has moved, or a worker has reported, since the survey. If ReportEvery has
// passed since then, it also detects live workers that have nothing to count.
func (v *View) Moves(ctx context.Context, f *Found) (bool, error) {
	shards := make([]*ranking.Store, len(f.stood))
	for i, was := range f.stood {
		shards[i] = was.store
	}
	states, err := onEach(ctx, shards, (*ranking.Store).State)
	if err != nil {
		return false, err
	}
	for i, was := range f.stood {
		if !maps.Equal(states[i].Ledger, was.ledger) || !maps.Equal(states[i].Workers, was.workers) {
			return true, nil
		}
	}
	return false, nil
}

// Drop removes the keys that were found, 500 per call, and waits for pause after each call. Redis frees
// them in the background. Drop stops after the current call if the context ends. progress, which may be
// nil, receives the number of keys removed so far.
func (v *View) Drop(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) error {
	gone := 0
	// The keys of a step are gone before the next step starts.
	for rest := f.keys; len(rest) > 0; {
		first, before := turn(rest[0]), gone
		n := slices.IndexFunc(rest, func(key string) bool { return turn(key) != first })
		if n < 0 {
			n = len(rest)
		}
		err := v.stores[0].Unlink(ctx, rest[:n], pause, func(n int) {
			if gone = before + n; progress != nil {
				progress(gone)
			}
		})
		if err == nil && len(rest) > n {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("drop %q: %d of %d keys are gone: %w", v.Prefix, gone, len(f.keys), err)
		}
		rest = rest[n:]
	}
	return nil
}

// Finds and drops some boards of a prefix while consumers write and readers read.

// SurveyBoards finds the listed windows of the boards whose name matches, on all shards. The result is for
// DropBoards.
func (v *View) SurveyBoards(ctx context.Context, match func(board string) bool) (*Found, error) {
	listings, err := v.Listings(ctx)
	if err != nil {
		return nil, err
	}
	f := &Found{}
	for i, all := range listings {
		var names []string
		for name := range all {
			if board, _, _ := strings.Cut(name, ":"); match(board) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		f.names = append(f.names, names)
		for _, name := range names {
			f.keys = append(f.keys, v.stores[i].Keys().Listed(name))
		}
	}
	f.Keys = len(f.keys)
	return f, v.count(ctx, f)
}

// droppedAtOnce is how many windows a call drops; it takes about a millisecond of Redis's time.
const droppedAtOnce = 200

// DropBoards drops the windows that SurveyBoards found, shard by shard. A call drops up to 200 windows, and
// a pause follows each. From then on the windows are neither shown nor written; a rebuild brings back those
// that the log covers. DropBoards stops after the current call if the context ends. progress, which may be
// nil, receives the number of windows tried, counted once per shard. dropped counts a window once, however
// many shards had it.
func (v *View) DropBoards(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) (dropped int64, err error) {
	done, gone := 0, map[string]bool{}
	for i, all := range f.names {
		for names := range slices.Chunk(all, droppedAtOnce) {
			some, err := dropBoards(ctx, v.stores[i], names)
			for _, name := range some {
				gone[name] = true
			}
			if err == nil && done+len(names) < f.Keys {
				err = retry.Sleep(ctx, pause)
			}
			if err != nil {
				return int64(len(gone)), fmt.Errorf("drop boards of %q: %d windows are dropped: %w", v.Prefix, len(gone), err)
			}
			if done += len(names); progress != nil {
				progress(done)
			}
		}
	}
	return int64(len(gone)), nil
}

// dropBoards drops windows of a shard and returns those that were listed.
func dropBoards(ctx context.Context, s *ranking.Store, names []string) (dropped []string, err error) {
	keys, args := []string{s.Keys().Windows(), s.Keys().Dropped(), s.Keys().Rebuild()}, []any{}
	for _, name := range names {
		shown, hidden := s.Keys().Both(name)
		keys, args = append(keys, shown, hidden), append(args, name)
	}
	reply, err := s.Call(ctx, lua.DropBoards, keys, args...)
	if err == nil && len(reply) == 1 && reply[0] == "busy" {
		return nil, ranking.ErrRebuilding
	}
	if err != nil {
		return nil, err
	}
	if _, ok := one(reply[:min(1, len(reply))]).(int64); !ok {
		return nil, ranking.Unexpected(lua.DropBoards, reply)
	}
	return ranking.Texts(reply[1:])
}

func one(reply []any) any {
	if len(reply) != 1 {
		return nil
	}
	return reply[0]
}
