package inventory

// Finds everything under a prefix, of any number of shards.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
)

// Found is the content of a prefix.
type Found struct {
	Boards  []string // with windows, sorted
	Windows int      // each counted once, on however many shards it is
	Members int64    // of all windows; a member of several windows counts in each
	Keys    int
	// Used maps partitions to the owners of workers that reported within liveFor.
	Used map[string]string
	// Rebuilding reports that a rebuild holds the lock, or died less than its lease ago.
	Rebuilding bool

	stood []stood  // ledger and workers of each shard
	keys  []string // in the order in which Drop removes them

	names [][]string // by shard, the listed windows that SurveyBoards found
}

// stood is a shard's ledger and workers' lines at the survey.
type stood struct {
	store           *ranking.Store
	ledger, workers map[string]string
}

// liveFor is how long after its last status line a worker counts as live.
const liveFor = 30 * time.Second

// Survey finds everything under the prefix, of any number of shards, listed or not.
func (v *View) Survey(ctx context.Context) (*Found, error) {
	f := &Found{Used: map[string]string{}}
	var err error
	if f.keys, err = v.scan(ctx); err != nil {
		return nil, fmt.Errorf("look for the keys of %q: %w", v.Prefix, err)
	}
	f.Keys = len(f.keys)
	shards := v.shardsOf(f.keys)
	states, err := onEach(ctx, shards, (*ranking.Store).State)
	if err != nil {
		return nil, err
	}
	for i := range states {
		f.stood = append(f.stood, stood{shards[i], states[i].Ledger, states[i].Workers})
		f.use(&states[i])
	}
	slices.SortFunc(f.keys, func(a, b string) int {
		if x, y := turn(a), turn(b); x != y {
			return x - y
		}
		return strings.Compare(a, b)
	})
	return f, v.count(ctx, f)
}

// use records which workers are live.
func (f *Found) use(st *ledger.State) {
	for partition, text := range st.Workers {
		var line struct {
			Owner   string    `json:"owner"`
			Written int64     `json:"written"` // Redis's clock, Unix ms; lines of older versions lack it
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
}

// shardsOf returns the shards of the keys, and those of the view.
func (v *View) shardsOf(keys []string) []*ranking.Store {
	all := map[string]*ranking.Store{}
	for _, s := range v.stores {
		all[s.Keys().Listed("")] = s
	}
	for _, key := range keys {
		if shard, of, ok := shardOf(key); ok {
			if s := v.shard(shard, of); all[s.Keys().Listed("")] == nil && strings.HasPrefix(key, s.Keys().Listed("")) {
				all[s.Keys().Listed("")] = s
			}
		}
	}
	shards := make([]*ranking.Store, 0, len(all))
	for _, tag := range slices.Sorted(maps.Keys(all)) {
		shards = append(shards, all[tag])
	}
	return shards
}

// tagged matches a key up to its tag and, with several shards, their number.
var tagged = regexp.MustCompile(`^[^{]*:\{([0-9]+)(?:\.[0-9]+\}:([0-9]+)|\}):`)

// shardOf returns the shard of a key, if the key has a shard's tag.
func shardOf(key string) (shard int, of ledger.Shards, ok bool) {
	m := tagged.FindStringSubmatch(key)
	if m == nil {
		return 0, 0, false
	}
	n := 1
	if m[2] != "" {
		n, _ = strconv.Atoi(m[2]) // Atoi clamps a number that is too large, which then fails the check below
	}
	shard, err := strconv.Atoi(m[1])
	of = ledger.Shards(n)
	return shard, of, err == nil && (n == 1) == (m[2] == "") && n <= ledger.MaxShards && shard < n
}

// nameOf returns a key's name within its shard: ledger, windows, global:weekly:2026-W47.
func nameOf(key string) string {
	tag, name, _ := strings.Cut(key, "}:")
	if strings.Contains(tag[strings.LastIndexByte(tag, '{')+1:], ".") { // one of several shards
		_, name, _ = strings.Cut(name, ":")
	}
	return name
}

// scan finds every key of the prefix on every master. It skips keys of longer prefixes that begin with this
// one.
func (v *View) scan(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	seen := map[string]bool{}
	ours := regexp.MustCompile(`^` + regexp.QuoteMeta(v.Prefix) + `:\{[0-9]+(\.[0-9]+)?\}:`)
	match := globs.Replace(v.Prefix) + ":{*}:*"
	err := redisconn.EachMaster(ctx, v.client, func(ctx context.Context, c *redis.Client) error {
		return redisconn.OnOneServer(ctx, v.timeout, func(context.Context) (redis.Cmdable, error) { return c, nil }, func() error {
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
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	page, next, err := c.Scan(ctx, cursor, match, 1000).Result()
	return page, next, redisconn.NameRight(err, "", v.Prefix)
}

// globs escapes the special characters of a SCAN pattern.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// count reads the size of every window's sorted set.
func (v *View) count(ctx context.Context, f *Found) error {
	var sets []string
	boards, windows := map[string]bool{}, map[string]bool{}
	for _, key := range f.keys {
		name := nameOf(key)
		f.Rebuilding = f.Rebuilding || name == "~rebuild"
		name = strings.TrimSuffix(name, ranking.HiddenSuffix) // a hidden set's members belong to its window
		if parts := strings.SplitN(name, ":", 3); len(parts) == 3 && !strings.HasPrefix(name, "~") {
			sets = append(sets, key)
			boards[parts[0]], windows[name] = true, true
		}
	}
	f.Boards, f.Windows = slices.Sorted(maps.Keys(boards)), len(windows)
	for page := range slices.Chunk(sets, 500) {
		if err := v.sizes(ctx, page, f); err != nil {
			return fmt.Errorf("count the members under %q: %w", v.Prefix, err)
		}
	}
	return nil
}

func (v *View) sizes(ctx context.Context, windows []string, f *Found) error {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	pipe := v.client.Pipeline()
	for _, key := range windows {
		pipe.ZCard(ctx, key)
	}
	all, err := pipe.Exec(ctx)
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered || redisconn.IsMissingRight(err) {
		return redisconn.NameRight(err, "", v.Prefix)
	}
	for _, one := range all {
		if n, ok := one.(*redis.IntCmd); ok { // 0 if the key isn't a sorted set; Drop removes it anyway
			f.Members += n.Val()
		}
	}
	return nil
}
