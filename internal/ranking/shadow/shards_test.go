package shadow

// A rebuild of several shards.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// sharded returns three shards of a prefix, each with a member.
func sharded(t *testing.T) (all []*fixture, live []*ranking.Store) {
	t.Helper()
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	for i := range 3 {
		f := newFixture(t, client, prefix)
		f.store = f.storeOf(t, func(c *ranking.Config) { c.Shard, c.Shards = i, 3 })
		f.begin(t)
		f.add(t, f.member("u1", 5))
		all, live = append(all, f), append(live, f.store)
	}
	return all, live
}

// Each shard is swapped on its own, at its own ledger's positions.
func TestEachShardIsSwappedWhereItsOwnLedgerIs(t *testing.T) {
	all, live := sharded(t)
	var rebuilds []*Rebuild
	for _, shard := range live {
		r, err := Lock(t.Context(), shard, "me", lease)
		require.NoError(t, err)
		rebuilds = append(rebuilds, r)
	}
	all[2].add(t, all[2].member("u1", 1)) // this shard is further ahead
	for i, f := range all {
		f.fold(t, rebuilds[i], ledger.Origin{}, f.member("u1", int64(10*(i+1))))
	}
	for i, f := range all {
		f.held(t, rebuilds[i])
		_, err := rebuilds[i].Swap(t.Context(), Choice{})
		require.NoError(t, err)
		for j, other := range all {
			b, err := other.store.Rank(t.Context(), "global", other.window(0), "u1")
			require.NoError(t, err)
			want := int64(10 * (j + 1))
			if j > i {
				want = []int64{5, 5, 6}[j]
			}
			require.Equal(t, want, b.Standings[0].Points, "shard %d once %d is swapped", j, i)
		}
	}
}
