package boards

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// some returns a board with members on every shard.
func some(t *testing.T, of ledger.Shards) (*fixture, *trips) {
	t.Helper()
	client := testenv.RedisClient(t)
	f := newFixture(t, client, testenv.Prefix(t), of, codec.Readable)
	for i := range 200 {
		f.put(t, f.standing(fmt.Sprint("u", i), int64(i), 0))
	}
	counted := new(trips)
	client.AddHook(counted)
	return f, counted
}

// The search ends, members rise, and then the page is read: the rows are not the page's any more, and
// another search finds it.
func TestAPageOfABoardThatHasChangedSinceTheSearchIsSoughtAgain(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 5, codec.Readable)
	var all []ranking.Standing
	for i := range 6000 {
		all = append(all, f.standing(fmt.Sprint("u", i), int64(i), 0))
	}
	f.put(t, all...)
	const offset, limit, slack = 3000, 10, 16
	parts, _, err := f.read(t.Context(), f.each(ranking.Query{Board: "global", Window: f.window}))
	require.NoError(t, err)
	s := newSearch(f.Boards, "global", f.window, parts, offset-slack)
	require.NoError(t, s.run(t.Context()))
	standings, ok, err := s.page(t.Context(), offset, limit, slack, limit)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, cut(ranked(all), offset, limit), standings)

	for i := range 2000 { // the last become the first
		all[i] = f.standing(all[i].Member, all[i].Points+10_000, 0)
	}
	f.put(t, all[:2000]...)
	_, ok, err = s.page(t.Context(), offset, limit, slack, limit)
	require.NoError(t, err)
	require.False(t, ok)
	b, err := f.Top(t.Context(), "global", f.window, offset, limit)
	require.NoError(t, err)
	require.Equal(t, cut(ranked(all), offset, limit), b.Standings)
}

func TestABoardThatAShardHasLostSaysWhichShard(t *testing.T) {
	f, _ := some(t, 5)
	top := func() ranking.Board {
		b, err := f.Top(t.Context(), "global", f.window, 0, 10)
		require.NoError(t, err)
		return b
	}
	on := fmt.Sprintf("shard 3 of 5 on %s", f.client.Options().Addr)
	for _, c := range []struct {
		lost string
		lose func()
	}{
		{ranking.LostBoard, func() { f.client.Del(t.Context(), f.key(3)) }},
		{ranking.Unlisted, func() {
			f.client.ZAdd(t.Context(), f.key(3), redis.Z{Score: 1, Member: "x"})
			f.client.Del(t.Context(), f.Shards()[3].Keys().Windows())
		}},
		{ranking.LostShard, func() {
			k := f.Shards()[3].Keys()
			f.client.Del(t.Context(), f.key(3), k.Ledger(), k.Schema(), k.Origin(), k.Windows(), k.Workers())
		}},
	} {
		c.lose()
		b := top()
		require.Equal(t, c.lost, b.Lost)
		require.Equal(t, on, b.LostOn)
		require.True(t, b.Listed)
	}
	require.Equal(t, []int{3}, top().Beside.Unlike)
}

func TestAnErrorNamesItsShardAndWhereThatIs(t *testing.T) {
	f, _ := some(t, 5)
	f.client.Del(t.Context(), f.key(4))
	f.client.Set(t.Context(), f.key(4), "what is this", 0)
	_, err := f.Top(t.Context(), "global", f.window, 0, 10)
	require.ErrorContains(t, err, fmt.Sprintf("shard 4 of 5 on %s: ", f.client.Options().Addr))
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, ledger.Halt, ranking.Classify(err))

	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer away.Close() //nolint:errcheck // nothing is in flight
	b := New(configured(t, away, "lb", 5, codec.Readable))
	_, err = b.Top(t.Context(), "global", f.window, 0, 10)
	require.ErrorContains(t, err, "shard 0 of 5 on 127.0.0.1:1: dial tcp")
	require.Equal(t, ledger.Retry, ranking.Classify(err))
	_, err = b.Shards()[2].State(t.Context())
	require.ErrorContains(t, err, "shard 2 of 5 on 127.0.0.1:1: dial tcp")
	one := New(configured(t, away, "lb", 1, codec.Readable))
	_, err = one.Top(t.Context(), "global", f.window, 0, 10)
	require.ErrorContains(t, err, "dial tcp")
	require.NotContains(t, err.Error(), "shard")
}
