package diff

// Shared test code: standings under a prefix, on one shard or several.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/test/testenv"
)

const (
	day       = int64(24 * 60 * 60 * 1000)
	retention = 60 * 24 * time.Hour
)

var partition = ledger.Partition{Topic: "events", Number: 3}

// standings are the standings under a prefix, in the current week, month and year.
type standings struct {
	client  *redis.Client
	config  ranking.Config
	stores  []*ranking.Store
	windows []ledger.Window
	now     int64 // Unix ms: some time ago, but in every window
	next    int64 // offset of the ledgers
}

// written returns standings without members.
func written(t *testing.T, client *redis.Client, prefix string, shards ledger.Shards, kind codec.Kind, most int64, change func(*ranking.Config)) *standings {
	t.Helper()
	now := time.Now().UTC()
	at := now.Add(-time.Hour)
	if today := now.Truncate(24 * time.Hour); at.Before(today) {
		at = today
	}
	s := &standings{client: client, now: at.UnixMilli(), config: ranking.Config{
		Client: client, Prefix: prefix, Shards: shards, Cluster: "c1", Timeout: 20 * time.Second, Periods: map[periods.Period]ranking.Period{},
	}}
	for _, p := range []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly} {
		layout, err := codec.New(kind, p.Length(), most)
		require.NoError(t, err)
		s.config.Periods[p] = ranking.Period{Layout: layout, Retention: retention}
		w, err := periods.Calendar{}.At(p, s.now)
		require.NoError(t, err)
		s.windows = append(s.windows, ledger.Window{Board: "global", Period: string(p), Name: w.Name, Start: w.Start, End: w.End})
	}
	if change != nil {
		change(&s.config)
	}
	for s.config.Shard = range int(shards) {
		store := ranking.New(s.config)
		begun, err := store.Begin(t.Context(), []ledger.StartPosition{{Partition: partition, At: ledger.At(0)}})
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
		s.stores = append(s.stores, store)
	}
	return s
}

// two returns equal standings under two prefixes, with different layouts.
func two(t *testing.T, shardsA, shardsB ledger.Shards) (a, b *standings) {
	t.Helper()
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	a = written(t, client, prefix, shardsA, codec.Readable, 99_999_999, nil)
	b = written(t, client, prefix+"2", shardsB, codec.Wide, 2_000_000_000, nil)
	b.now, b.windows = a.now, a.windows // one of the windows might end in between
	random := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		var members []ledger.Member
		for m := range 1200 {
			one := a.member(fmt.Sprint("m", m), random.Int64N(1000))
			one.Time -= random.Int64N(10_000)
			members = append(members, one)
		}
		a.add(t, members...)
		b.add(t, members...)
	}
	return a, b
}

func (s *standings) member(id string, points int64) ledger.Member {
	return ledger.Member{ID: []byte(id), Points: points, Time: s.now}
}

// of returns the shard of a member.
func (s *standings) of(member string) *ranking.Store {
	return s.stores[ledger.Shards(len(s.stores)).Of(xxhash.Sum64String(member))]
}

// key returns the sorted set of the first window on the member's shard.
func (s *standings) key(member string) string {
	return s.of(member).Keys().Window(&s.windows[0])
}

// apply adds members to all windows, on every shard.
func (s *standings) apply(ctx context.Context, members ...ledger.Member) error {
	for _, store := range s.stores {
		p := ledger.Piece{Partition: partition, Expected: ledger.At(s.next), Next: ledger.At(s.next + 10), Windows: s.windows}
		g := ledger.Group{Windows: []int{0, 1, 2}}
		for _, m := range members {
			if s.of(string(m.ID)) == store {
				g.Members = append(g.Members, m)
			}
		}
		if len(g.Members) > 0 {
			p.Groups = []ledger.Group{g}
		}
		if a, _, err := store.Apply(ctx, &p); err != nil || a.Outcome != ledger.Applied {
			return fmt.Errorf("%v: %w", a, err)
		}
	}
	s.next += 10
	return nil
}

func (s *standings) add(t *testing.T, members ...ledger.Member) {
	t.Helper()
	require.NoError(t, s.apply(t.Context(), members...))
}

// moveTo sets the ledger of a shard to an offset.
func (s *standings) moveTo(t *testing.T, shard int, offset int64) {
	t.Helper()
	require.NoError(t, s.client.HSet(t.Context(), s.stores[shard].Keys().Ledger(), partition.String(), offset).Err())
}

func (s *standings) view(t *testing.T, shards ledger.Shards) *inventory.View {
	t.Helper()
	v, err := inventory.NewView(t.Context(), s.client, s.config.Prefix, shards, 20*time.Second)
	require.NoError(t, err)
	require.Len(t, s.stores, int(v.Shards))
	return v
}

// diff compares a with b, and returns the windows and the standings that differ.
func diff(t *testing.T, a, b *standings, change func(*Prefixes)) ([]Window, []ranking.Difference) {
	t.Helper()
	d := &Prefixes{
		A: a.view(t, ledger.Shards(len(a.stores))), B: b.view(t, 1), // finds the number of shards by itself
		Most: 5000, Again: 20 * time.Millisecond,
	}
	if change != nil {
		change(d)
	}
	windows, err := d.Run(t.Context())
	require.NoError(t, err)
	var all []ranking.Difference
	for i := range windows {
		all = append(all, windows[i].Members...)
	}
	return windows, all
}

// numbers runs a test with several pairs of numbers of shards.
func numbers(t *testing.T, run func(t *testing.T, a, b ledger.Shards)) {
	for _, n := range [][2]ledger.Shards{{1, 1}, {3, 3}, {1, 4}, {5, 2}} {
		t.Run(fmt.Sprintf("%d and %d shards", n[0], n[1]), func(t *testing.T) { run(t, n[0], n[1]) })
	}
}

// eavesdropper receives the arguments of every call and can make the call fail.
type eavesdropper func(args []any) error

func (eavesdropper) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a eavesdropper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := a(cmd.Args()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}
func (eavesdropper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
