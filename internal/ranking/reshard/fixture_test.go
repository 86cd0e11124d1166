package reshard

// Helpers of these tests: standings of some boards and windows under a prefix, written by the store itself,
// and a function that reads everything that a number of shards holds.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/test/testenv"
)

var partitions = []ledger.Partition{{Topic: "points"}, {Topic: "points", Number: 1}, {Topic: "extra"}}

type fixture struct {
	client *redis.Client
	config ranking.Config
	prefix string
	now    time.Time
	next   int64
}

// fixed returns a fixture with a few hundred members in windows of two boards, one of them small.
func fixed(t testing.TB, of ledger.Shards, kind codec.Kind) *fixture {
	t.Helper()
	f := begun(t, of, kind)
	random := rand.New(rand.NewPCG(3, 4))
	for range 3 {
		f.add(t, random, "global", 60)
		f.add(t, random, "eu", 2)
	}
	return f
}

func begun(t testing.TB, of ledger.Shards, kind codec.Kind) *fixture {
	t.Helper()
	f := &fixture{client: testenv.RedisClient(t), prefix: testenv.Prefix(t), now: time.Now().UTC(), next: 100}
	f.config = ranking.Config{Client: f.client, Prefix: f.prefix, Cluster: "c1", Timeout: 20 * time.Second, Periods: map[periods.Period]ranking.Period{}}
	for _, p := range []periods.Period{periods.Weekly, periods.Yearly} {
		layout, err := codec.New(kind, p.Length(), 99_999_999)
		require.NoError(t, err)
		f.config.Periods[p] = ranking.Period{Layout: layout, Retention: 60 * 24 * time.Hour}
	}
	for i, s := range f.of(of).Shards() {
		var all []ledger.StartPosition
		for n, p := range partitions {
			all = append(all, ledger.StartPosition{Partition: p, At: ledger.At(100), Origin: &ledger.Origin{Offset: int64(n), Time: int64(10 * i)}, Refill: int64(200 + i)})
		}
		began, err := s.Begin(t.Context(), all)
		require.NoError(t, err)
		require.Equal(t, ledger.Began, began)
	}
	return f
}

// of returns the boards with the given number of shards.
func (f *fixture) of(n ledger.Shards) *boards.Boards {
	c := f.config
	c.Shards = n
	return boards.New(c)
}

// windows returns a board's current windows.
func (f *fixture) windows(t testing.TB, board string) (all []ledger.Window) {
	t.Helper()
	for _, p := range []periods.Period{periods.Weekly, periods.Yearly} {
		w, err := periods.Calendar{}.At(p, f.now.UnixMilli())
		require.NoError(t, err)
		all = append(all, ledger.Window{Board: board, Period: string(p), Name: w.Name, Start: w.Start, End: w.End})
	}
	return all
}

// add adds points to members, on the current shards.
func (f *fixture) add(t testing.TB, random *rand.Rand, board string, members int) {
	t.Helper()
	var all []ledger.Member
	for i := range members {
		all = append(all, ledger.Member{ID: fmt.Appendf(nil, "m%d", i), Points: random.Int64N(1000), Time: f.now.UnixMilli() - random.Int64N(10_000)})
	}
	require.NoError(t, f.apply(t.Context(), f.number(t), f.windows(t, board), all...))
}

func (f *fixture) apply(ctx context.Context, of ledger.Shards, windows []ledger.Window, members ...ledger.Member) error {
	for i, s := range f.of(of).Shards() {
		p := ledger.Piece{Partition: partitions[0], Expected: ledger.At(f.next), Next: ledger.At(f.next + 10), Windows: windows}
		g := ledger.Group{}
		for w := range windows {
			g.Windows = append(g.Windows, w)
		}
		for _, m := range members {
			if of.Of(xxhash.Sum64(m.ID)) == i {
				g.Members = append(g.Members, m)
			}
		}
		if len(g.Members) > 0 {
			p.Groups = []ledger.Group{g}
		}
		if a, _, err := s.Apply(ctx, &p); err != nil || a.Outcome != ledger.Applied {
			return errors.Join(fmt.Errorf("shard %d: %v", i, a), err)
		}
	}
	f.next += 10
	return nil
}

// number returns the number of shards that is read.
func (f *fixture) number(t testing.TB) ledger.Shards { t.Helper(); return f.view(t, 1).Shards }

func (f *fixture) view(t testing.TB, expected ledger.Shards) *inventory.View {
	t.Helper()
	v, err := inventory.NewView(t.Context(), f.client, f.prefix, expected, 20*time.Second)
	require.NoError(t, err)
	return v
}

// job returns a reshard with short waits.
func (f *fixture) job(t testing.TB, to ledger.Shards) *Job {
	t.Helper()
	return &Job{
		View: f.view(t, 1), To: to, Owner: "the test", Lease: 10 * time.Second, Level: time.Second,
		Watch: Watch{Step: func(Step) {}, Copied: func(int64) {}, Note: func(string) {}},
	}
}

// held is everything that some shards hold, independent of the number of shards: scores by window and
// member, and the shards' positions.
type held struct {
	scores   map[string]map[string]float64
	ledgers  []map[string]string
	listed   map[string]string
	origins  []map[string]string
	forEver  int // number of keys without an expiry
	expiring int
	expires  map[string]time.Time // of each window's key, on one shard
}

func (f *fixture) holds(t testing.TB, of ledger.Shards) held {
	t.Helper()
	h := held{scores: map[string]map[string]float64{}, listed: map[string]string{}, expires: map[string]time.Time{}}
	for i, s := range f.of(of).Shards() {
		k := s.Keys()
		names := f.client.HGetAll(t.Context(), k.Windows()).Val()
		for name, text := range names {
			h.listed[name] = text
			if h.scores[name] == nil {
				h.scores[name] = map[string]float64{}
			}
			for _, z := range f.client.ZRangeWithScores(t.Context(), k.Listed(name), 0, -1).Val() {
				member := z.Member.(string)
				require.Equal(t, i, of.Of(xxhash.Sum64String(member)), "%s is on a shard that isn't its own", member)
				require.NotContains(t, h.scores[name], member)
				h.scores[name][member] = z.Score
			}
			h.expires[name] = time.Now().Add(f.client.PTTL(t.Context(), k.Listed(name)).Val()).Round(time.Minute)
		}
		h.ledgers = append(h.ledgers, f.client.HGetAll(t.Context(), k.Ledger()).Val())
		h.origins = append(h.origins, f.client.HGetAll(t.Context(), k.Origin()).Val())
		for _, key := range []string{k.Windows(), k.Ledger(), k.Origin(), k.Schema(), k.Workers()} {
			switch left := f.client.PTTL(t.Context(), key).Val(); {
			case left == -1:
				h.forEver++
			case left > 0:
				h.expiring++
			}
		}
	}
	return h
}

// keys returns all keys of the prefix, and whether each expires.
func (f *fixture) keys(t testing.TB) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	scan := f.client.Scan(t.Context(), 0, f.prefix+":*", 1000).Iterator()
	for scan.Next(t.Context()) {
		all[scan.Val()] = f.client.PTTL(t.Context(), scan.Val()).Val() > 0
	}
	require.NoError(t, scan.Err())
	return all
}

// sameAs requires the state after a reshard to equal the state before.
func (h held) sameAs(t testing.TB, was held) {
	t.Helper()
	require.Equal(t, was.scores, h.scores)
	require.Equal(t, was.listed, h.listed)
	for _, of := range h.ledgers {
		require.Equal(t, was.ledgers[0], of)
	}
	require.Zero(t, h.expiring, "keys that stay expire")
	require.Equal(t, was.expires, h.expires)
}

// dying is a client whose calls fail from one call on, before they reach Redis or after.
type dying struct {
	after    int
	executed bool // the first call that fails still reaches Redis
	mu       sync.Mutex
	n        int
}

// errDead is a permanent error.
var errDead deadError

type deadError struct{}

func (deadError) Error() string { return "NOPERM dead" }
func (deadError) RedisError()   {}

func (d *dying) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *dying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return d.call(func() error { return next(ctx, cmd) }, []redis.Cmder{cmd})
	}
}

func (d *dying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return d.call(func() error { return next(ctx, cmds) }, cmds)
	}
}

func (d *dying) call(do func() error, cmds []redis.Cmder) error {
	d.mu.Lock()
	d.n++
	n := d.n
	d.mu.Unlock()
	if n < d.after {
		return do()
	}
	if n == d.after && d.executed {
		_ = do()
	}
	for _, cmd := range cmds {
		cmd.SetErr(errDead)
	}
	return errDead
}

// ours removes the locks, which expire by themselves, from keys.
func ours(keys map[string]bool) map[string]bool {
	maps.DeleteFunc(keys, func(key string, _ bool) bool {
		return strings.HasSuffix(key, "~reshard") || strings.HasSuffix(key, "~rebuild") || strings.HasSuffix(key, ":hold")
	})
	return keys
}
