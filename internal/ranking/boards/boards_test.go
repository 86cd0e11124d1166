package boards

import (
	"context"
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

func TestOneShardIsOneCallAndNothingElse(t *testing.T) {
	f, trips := some(t, 1)
	var calls [][]any
	f.client.AddHook(calling(func(args []any) { calls = append(calls, args) }))
	for _, read := range []func() (ranking.Board, error){
		func() (ranking.Board, error) { return f.Top(t.Context(), "global", f.window, 150, 10) },
		func() (ranking.Board, error) { return f.Rank(t.Context(), "global", f.window, "u1", "u2", "no") },
		func() (ranking.Board, error) { return f.Around(t.Context(), "global", f.window, "u1", 2) },
	} {
		_, err := read() // loads the script into the server
		require.NoError(t, err)
		trips.n.Store(0)
		calls = nil
		b, err := read()
		require.NoError(t, err)
		require.Equal(t, int64(1), trips.n.Load())
		require.Len(t, calls, 1)
		require.Nil(t, b.Shards)
		require.Empty(t, b.LostOn)
	}
}

func TestAPageNearTheTopIsOneRoundTripAndRanksAreTwo(t *testing.T) {
	f, trips := some(t, 16)
	members := []string{"no"}
	for i := range 100 {
		members = append(members, fmt.Sprint("u", i))
	}
	for range 2 { // the first pass loads the scripts into the server
		trips.n.Store(0)
		_, err := f.Top(t.Context(), "global", f.window, 0, 100)
		require.NoError(t, err)
	}
	require.Equal(t, int64(1), trips.n.Load())
	for range 2 {
		trips.n.Store(0)
		_, err := f.Rank(t.Context(), "global", f.window, members...)
		require.NoError(t, err)
	}
	require.Equal(t, int64(2), trips.n.Load())
}

// Reads are exact however members are distributed, even if one shard has all of the first rows.
func TestATopIsExactWhereOneShardHasAllOfIt(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 16, codec.Readable)
	var all []ranking.Standing
	for i := 0; len(all) < 1000; i++ {
		st := f.standing(fmt.Sprint("u", i), int64(i%700), 0)
		if f.home(st.Member) == 3 {
			st = f.standing(st.Member, st.Points+1000, 0)
		}
		all = append(all, st)
	}
	for i := 1000; len(all) < 1500; i++ {
		if st := f.standing(fmt.Sprint("u", i), int64(i), 0); f.home(st.Member) == 3 {
			all = append(all, st)
		}
	}
	f.put(t, all...)
	all = ranked(all)
	for _, limit := range []int{1, 10, 100, 400, 700, 1499, 1500, 1600} {
		b, err := f.Top(t.Context(), "global", f.window, 0, limit)
		require.NoError(t, err)
		require.Equal(t, cut(all, 0, limit), b.Standings)
		b, err = f.farDown(t.Context(), f.any(), 200, limit)
		require.NoError(t, err)
		require.Equal(t, cut(all, 200, limit), b.Standings)
	}
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

// A shard lists a window once it has a member in it.
func TestAWindowThatOneShardListsIsListed(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 5, codec.Readable)
	f.put(t, f.standing("u1", 3, 0))
	b, err := f.Top(t.Context(), "global", f.window, 0, 10)
	require.NoError(t, err)
	require.True(t, b.Listed)
	require.Empty(t, b.Lost)
	require.Equal(t, int64(1), b.Members)
	require.Len(t, b.Shards, 5)
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

// Positions differ if a batch had no changes for a shard, or a shard was rolled back.
func TestABoardIsAsFarAsTheShardThatIsFurthestBehind(t *testing.T) {
	f, _ := some(t, 3)
	f.client.HSet(t.Context(), f.Shards()[1].Keys().Ledger(), "points/0", "7")
	f.client.HSet(t.Context(), f.Shards()[2].Keys().Origin(), "points/0", fmt.Sprintf("5 %d", f.window.Start+1))
	b, err := f.Top(t.Context(), "global", f.window, 0, 10)
	require.NoError(t, err)
	require.Equal(t, "7", b.Beside.Ledger["points/0"])
	require.Equal(t, "10", b.Shards[2].Ledger["points/0"])
	require.Equal(t, []string{"points/0"}, b.Incomplete)
}

func TestAPrefixWithoutStandingsSaysSo(t *testing.T) {
	b := New(configured(t, testenv.RedisClient(t), testenv.Prefix(t), 3, codec.Readable))
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 1, codec.Readable)
	_, err := b.Top(t.Context(), "global", f.window, 0, 10)
	require.ErrorContains(t, err, "no standings under the prefix")
}

// A reader does not know the Kafka cluster; every shard's schema contains it.
func TestAReaderNeedsNotKnowTheCluster(t *testing.T) {
	f, trips := some(t, 3)
	prefix := f.Shards()[0].Prefix()
	c := configured(t, f.client, prefix, 3, codec.Readable)
	c.Cluster = ""
	reader := New(c)
	for range 2 {
		trips.n.Store(0)
		b, err := reader.Rank(t.Context(), "global", f.window, "u199")
		require.NoError(t, err)
		require.Equal(t, int64(1), b.Standings[0].Rank)
	}
	require.Equal(t, int64(2), trips.n.Load(), "from the second read on it is no more")
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

// calling receives the arguments of every call.
type calling func(args []any)

func (calling) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c calling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c(cmd.Args())
		return next(ctx, cmd)
	}
}
func (calling) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
