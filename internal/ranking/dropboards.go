package ranking

// Finds and drops some boards of a prefix while consumers write and readers read.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/retry"
)

// ErrRebuilding reports that a rebuild is running, which would bring dropped windows back.
var ErrRebuilding = errors.New("a rebuild is under way, or was killed less than a minute ago")

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
			f.keys = append(f.keys, v.stores[i].keys.Listed(name))
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
			some, err := v.stores[i].dropBoards(ctx, names)
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
func (s *Store) dropBoards(ctx context.Context, names []string) (dropped []string, err error) {
	keys, args := []string{s.keys.Windows(), s.keys.Dropped(), s.keys.Rebuild()}, []any{}
	for _, name := range names {
		shown, hidden := s.keys.Both(name)
		keys, args = append(keys, shown, hidden), append(args, name)
	}
	reply, err := s.Call(ctx, lua.DropBoards, keys, args...)
	if err == nil && len(reply) == 1 && reply[0] == "busy" {
		return nil, ErrRebuilding
	}
	if err != nil {
		return nil, err
	}
	if _, ok := one(reply[:min(1, len(reply))]).(int64); !ok {
		return nil, Unexpected(lua.DropBoards, reply)
	}
	return Texts(reply[1:])
}

func one(reply []any) any {
	if len(reply) != 1 {
		return nil
	}
	return reply[0]
}
