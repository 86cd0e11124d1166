package ranking

// Everything under a prefix, found and removed.
//
// The order of removal is what makes a half of it harmless. The ledger goes first: no
// piece that is on its way is written any more. Then the schema: whoever reads is told
// that there is nothing. The listing goes last: while it has windows, and the ledger is
// gone, a consumer that starts under the prefix halts ("orphaned") in place of counting on
// top of what is left. Dropped again, it goes on where it ended.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Found is what stands under a prefix.
type Found struct {
	Boards  []string // that have windows
	Windows int
	Members int64 // of all windows, with those of several counted in each
	Keys    int
	// Used is by whom it is used: owners of workers that have reported within
	// liveFor, by partition.
	Used map[string]string
	// Rebuilding: a rebuild has the lock, or died less than its lease ago.
	Rebuilding bool

	ledger, workers map[string]string

	keys  []string // in the order in which they are removed
	names []string // of windows, where those of some boards were looked for
}

// liveFor is how long after its last line a worker is taken to live: three lines.
const liveFor = 30 * time.Second

// Survey looks for everything under the prefix: what is listed, and what isn't.
func (v *View) Survey(ctx context.Context) (*Found, error) {
	st, err := v.store.State(ctx)
	if err != nil {
		return nil, err
	}
	f := &Found{Used: map[string]string{}, ledger: st.Ledger, workers: st.Workers}
	for partition, text := range st.Workers {
		var line struct {
			Owner   string    `json:"owner"`
			Written int64     `json:"written"` // by Redis's clock; lines of older versions have none
			At      time.Time `json:"at"`
		}
		if json.Unmarshal([]byte(text), &line) != nil {
			continue
		}
		if line.Written > 0 {
			line.At = time.UnixMilli(line.Written)
		}
		if st.Now.Sub(line.At) < liveFor {
			f.Used[partition] = line.Owner
		}
	}
	if f.keys, err = v.scan(ctx); err != nil {
		return nil, fmt.Errorf("look for the keys of %q: %w", v.Prefix, err)
	}
	f.Keys = len(f.keys)
	f.Rebuilding = slices.Contains(f.keys, v.store.keys.rebuild())
	slices.SortFunc(f.keys, func(a, b string) int {
		if x, y := v.turn(a), v.turn(b); x != y {
			return x - y
		}
		return strings.Compare(a, b)
	})
	return f, v.count(ctx, f)
}

// turn is when a key is removed.
func (v *View) turn(key string) int {
	_, name, _ := strings.Cut(key, "}:")
	switch name {
	case "ledger":
		return 0
	case "schema":
		return 1
	case "windows":
		return 3
	}
	return 2
}

// scan finds every key of the prefix, on every master: those of other prefixes that begin
// alike aren't of it.
func (v *View) scan(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	seen := map[string]bool{}
	ours := regexp.MustCompile(`^` + regexp.QuoteMeta(v.Prefix) + `:\{[0-9]+\}:`)
	match := globs.Replace(v.Prefix) + ":{*}:*"
	err := EachMaster(ctx, v.store.client, func(ctx context.Context, c *redis.Client) error {
		return v.store.steadily(ctx, func() (redis.Cmdable, error) { return c, nil }, func() error {
			for cursor := uint64(0); ; {
				page, next, err := v.page(ctx, c, cursor, match)
				if err != nil {
					return err
				}
				mu.Lock()
				for _, key := range page {
					if ours.MatchString(key) {
						seen[key] = true
					}
				}
				mu.Unlock()
				if cursor = next; cursor == 0 {
					return nil
				}
			}
		})
	})
	all := make([]string, 0, len(seen))
	for key := range seen {
		all = append(all, key)
	}
	return all, err
}

func (v *View) page(ctx context.Context, c *redis.Client, cursor uint64, match string) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, v.store.timeout)
	defer cancel()
	page, next, err := c.Scan(ctx, cursor, match, 1000).Result()
	return page, next, asRights(err, "", v.Prefix)
}

// globs escapes what a pattern of SCAN takes for more than itself.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// count asks for the size of every sorted set that is a window's.
func (v *View) count(ctx context.Context, f *Found) error {
	var windows []string
	boards := map[string]bool{}
	for _, key := range f.keys {
		_, name, _ := strings.Cut(key, "}:")
		if parts := strings.SplitN(name, ":", 3); len(parts) == 3 && !strings.HasPrefix(name, "~") {
			windows = append(windows, key)
			boards[parts[0]] = true
		}
	}
	for board := range boards {
		f.Boards = append(f.Boards, board)
	}
	slices.Sort(f.Boards)
	f.Windows = len(windows)
	for page := range slices.Chunk(windows, 500) {
		if err := v.sizes(ctx, page, f); err != nil {
			return fmt.Errorf("count the members under %q: %w", v.Prefix, err)
		}
	}
	return nil
}

func (v *View) sizes(ctx context.Context, windows []string, f *Found) error {
	ctx, cancel := context.WithTimeout(ctx, v.store.timeout)
	defer cancel()
	pipe := v.store.client.Pipeline()
	for _, key := range windows {
		pipe.ZCard(ctx, key)
	}
	all, err := pipe.Exec(ctx)
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered || missingRight(err) {
		return asRights(err, "", v.Prefix)
	}
	for _, one := range all {
		if n, ok := one.(*redis.IntCmd); ok { // 0 for what isn't a sorted set: it goes all the same
			f.Members += n.Val()
		}
	}
	return nil
}

// ReportEvery is how often a worker writes its line, at the least.
const ReportEvery = 10 * time.Second

// Moves reports whether the ledger has moved, or a worker reported, since the survey. One
// that lives and has nothing to count is seen if that is longer ago than ReportEvery.
func (v *View) Moves(ctx context.Context, f *Found) (bool, error) {
	st, err := v.store.State(ctx)
	if err != nil {
		return false, err
	}
	return !maps.Equal(st.Ledger, f.ledger) || !maps.Equal(st.Workers, f.workers), nil
}

// Drop removes what was found, some hundred keys a call with a pause after each: Redis
// frees them in the background. It heeds the context's end after every call. progress,
// which may be nil, is told how many keys are gone.
func (v *View) Drop(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) error {
	gone := 0
	// What comes first is gone before what comes after is tried.
	for rest := f.keys; len(rest) > 0; {
		turn, before := v.turn(rest[0]), gone
		n := slices.IndexFunc(rest, func(key string) bool { return v.turn(key) != turn })
		if n < 0 {
			n = len(rest)
		}
		err := v.store.unlink(ctx, rest[:n], pause, func(n int) {
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
