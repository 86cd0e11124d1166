package snapshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// standing are the shards of a prefix, in which some members have points.
func standing(t *testing.T, client *redis.Client, prefix string, of ledger.Shards, members int) (stores []*ranking.Store, windows []ledger.Window) {
	t.Helper()
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 99_999_999)
	require.NoError(t, err)
	var calendar periods.Calendar
	now := time.Now()
	week, err := calendar.At(periods.Weekly, now.UnixMilli())
	require.NoError(t, err)
	w := ledger.Window{Board: "global", Period: "weekly", Name: week.Name, Start: week.Start, End: week.End}
	partition := ledger.Partition{Topic: "events", Number: 0}
	for shard := range int(of) {
		s := ranking.New(ranking.Config{Client: client, Prefix: prefix, Shard: shard, Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
			Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}}})
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: partition, At: ledger.At(0)}})
		require.NoError(t, err)
		p := ledger.Piece{Partition: partition, Expected: ledger.At(0), Next: ledger.At(10), Windows: []ledger.Window{w}, Groups: []ledger.Group{{Windows: []int{0}}}}
		for i := range members {
			p.Groups[0].Members = append(p.Groups[0].Members, ledger.Member{ID: fmt.Appendf(nil, "m%d-%d", shard, i), Points: int64(1 + i), Time: now.UnixMilli()})
		}
		a, _, err := s.Apply(t.Context(), &p)
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
		stores = append(stores, s)
	}
	return stores, []ledger.Window{w}
}

func takes(t *testing.T, client *redis.Client, prefix string, of ledger.Shards) {
	t.Helper()
	stores, windows := standing(t, client, prefix, of, 900)
	d := in(t)
	m, err := d.Take(t.Context(), stores, Pace{Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, m.Files, int(of))
	for shard, store := range stores {
		s, err := d.Survey(t.Context(), m, shard)
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"events/0": 10}, s.Reach)
		got := map[string]float64{}
		require.NoError(t, d.Pages(t.Context(), m, shard, s, func(p *ranking.SnapshotPage) error {
			require.Equal(t, windows[0].Listing(), p.Window)
			for _, r := range p.Rows {
				got[r.Member] = r.Score
			}
			return nil
		}))
		all, err := client.ZRangeWithScores(t.Context(), store.Keys().Window(&windows[0]), 0, -1).Result()
		require.NoError(t, err)
		want := map[string]float64{}
		for _, z := range all {
			want[z.Member.(string)] = z.Score
		}
		require.Len(t, want, 900)
		require.Equal(t, want, got)
	}
	_, err = stores[0].BeginSnapshot(t.Context(), time.Minute) // it has let go of its token
	require.NoError(t, err)
}

func TestASnapshotHasWhatRedisHas(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		t.Run(fmt.Sprint(of), func(t *testing.T) { takes(t, testenv.RedisClient(t), testenv.Prefix(t), of) })
	}
}

func TestASnapshotHasWhatAnEmbeddedRedisHas(t *testing.T) {
	server, err := embedded.StartMiniredis(t.Context())
	require.NoError(t, err)
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	takes(t, client, "lb", 1)
}

func TestASnapshotThatFailsLeavesTheOnesBeforeAndNothingElse(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	stores, windows := standing(t, client, prefix, 1, 10)
	d := in(t)
	m, err := d.Take(t.Context(), stores, Pace{Lease: time.Minute})
	require.NoError(t, err)
	require.NoError(t, client.Del(t.Context(), stores[0].Keys().Window(&windows[0])).Err())
	_, err = d.Take(t.Context(), stores, Pace{Lease: time.Minute})
	require.ErrorContains(t, err, "lost a key")
	require.Equal(t, []string{m.Name}, names(t, d))
	_, err = stores[0].BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
}
