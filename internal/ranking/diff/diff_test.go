package diff

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/test/testenv"
)

func TestTheSameEventsAreEqualInAnyLayoutOnAnyNumberOfShards(t *testing.T) {
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		windows, all := diff(t, a, b, nil)
		require.Empty(t, all)
		require.Len(t, windows, 3)
		for _, w := range windows {
			require.False(t, w.Differs(), "%+v", w)
			require.True(t, w.Exact)
		}
	})
}

func TestEveryKindOfDifferenceIsFound(t *testing.T) {
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		layout := b.config.Periods[periods.Weekly].Layout
		w := b.windows[0]
		score, err := layout.Encode(77, layout.Ticks(w.Start, w.End, b.now))
		require.NoError(t, err)
		zadd := func(member string, score float64) {
			require.NoError(t, b.client.ZAdd(t.Context(), b.key(member), redis.Z{Score: score, Member: member}).Err())
		}
		zadd("m1", score)
		zadd("more", score)
		require.NoError(t, b.client.ZRem(t.Context(), b.key("m2"), "m2").Err())
		zadd("m3", -1) // a wide layout doesn't write it
		had := b.client.ZScore(t.Context(), b.key("m4"), "m4").Val()
		points, ticks, err := layout.Decode(had)
		require.NoError(t, err)
		coarser := a.config.Periods[periods.Weekly].Layout.Tick
		later, err := layout.Encode(points, ticks-2*coarser/layout.Tick)
		require.NoError(t, err)
		zadd("m4", later)

		windows, all := diff(t, a, b, nil)
		got := windows[1] // weekly; monthly is the first
		require.Equal(t, "weekly", got.Period)
		require.Len(t, got.Members, 5)
		members := []string{}
		for _, d := range all {
			require.Equal(t, "weekly", d.Period)
			members = append(members, d.Member)
		}
		require.Equal(t, []string{"m1", "m2", "m3", "m4", "more"}, members)
		require.Equal(t, int64(77), all[0].B.Points)
		require.False(t, all[1].B.There)
		require.False(t, all[4].A.There)
		require.NotEqual(t, all[3].A.ReachedAt, all[3].B.ReachedAt)
		require.True(t, all[2].B.Foreign)
		for _, filter := range []func(*Prefixes){
			func(d *Prefixes) { d.Periods = []string{"monthly", "yearly"} },
			func(d *Prefixes) { d.Windows = []string{a.windows[2].Name} },
		} {
			_, all := diff(t, a, b, filter)
			require.Empty(t, all)
		}
		windows, all = diff(t, a, b, func(d *Prefixes) { d.Most = 2 })
		require.True(t, windows[1].More)
		require.Len(t, all, 2)
	})
}

// The scores on both sides are integers of 20 digits, as texts.
func TestWideScoresThatDifferDoSoWhateverTheirTexts(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	a := written(t, client, prefix, 1, codec.Wide, 15<<30, nil)
	b := written(t, client, prefix+"2", 1, codec.Wide, 15<<30, nil)
	b.now, b.windows = a.now, a.windows
	points, _, err := a.config.Periods[periods.Weekly].Layout.Decode(1 << 64)
	require.NoError(t, err)
	a.add(t, a.member("m1", points+1), a.member("m2", points+1))
	b.add(t, b.member("m1", points+2), b.member("m2", points+1))
	windows, all := diff(t, a, b, nil)
	require.Len(t, all, 3)
	for i, w := range windows {
		require.Len(t, w.Members, 1)
		require.Equal(t, "m1", all[i].Member)
	}
}

func TestWindowsThatAreCutOtherwiseAreNamedAndNotCompared(t *testing.T) {
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		last := b.stores[m-1].Keys()
		require.NoError(t, b.client.HSet(t.Context(), last.Windows(), a.windows[0].Listing(), `{"end":2,"expires":99999999999999,"start":1}`).Err())
		windows, all := diff(t, a, b, nil)
		require.Empty(t, all)
		require.Contains(t, windows[1].Why, "it is cut otherwise under the two")
		require.True(t, windows[1].Differs())

		sunday := written(t, a.client, a.config.Prefix+"3", m, codec.Readable, 99_999_999, func(c *ranking.Config) {
			calendar, err := periods.NewCalendar("UTC", "sunday")
			require.NoError(t, err)
			c.Calendar = calendar
			delete(c.Periods, periods.Yearly)
		})
		windows, _ = diff(t, a, sunday, nil)
		require.Contains(t, windows[1].Why, "it is cut otherwise under the two")
		require.Equal(t, "yearly boards aren't kept under "+sunday.config.Prefix, windows[2].Why)
		require.Empty(t, windows[0].Why, "a month is one under any week start")
		require.Len(t, windows[0].Members, 1200)
	})
}

func TestAShardOrASideThatIsBehindIsNotExact(t *testing.T) {
	testenv.SlowEmbedded(t)
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		b.moveTo(t, int(m)-1, 20)
		windows, all := diff(t, a, b, nil)
		require.False(t, windows[0].Exact)
		require.Empty(t, all)
		a.add(t, a.member("m1", 5))
		windows, all = diff(t, a, b, nil)
		require.Len(t, all, 3)
		for _, w := range windows {
			require.False(t, w.Exact)
			require.Len(t, w.Members, 1)
		}
	})
}

// A window is over if one shard would no longer accept its events, or no longer shows it.
func TestAWindowThatIsOverOnAShardIsLeftOut(t *testing.T) {
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		w := b.windows[0]
		listing := ranking.Listing{Window: w, Expires: time.Now().UnixMilli() - 1}
		require.NoError(t, b.client.HSet(t.Context(), b.stores[m-1].Keys().Windows(), w.Listing(), listing.Text()).Err())
		windows, _ := diff(t, a, b, nil)
		require.Len(t, windows, 2)
	})
}

// Both sides get events during the comparison: members that differ meanwhile are read again, and are equal.
func TestTrafficToBothIsNoDifference(t *testing.T) {
	testenv.SlowEmbedded(t)
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- traffic(t.Context(), stop, a, b) }()
		windows, all := diff(t, a, b, func(d *Prefixes) { d.Pause = 5 * time.Millisecond })
		close(stop)
		require.NoError(t, <-ended)
		require.LessOrEqual(t, len(all), 3, "one event may be on its way")
		require.Len(t, windows, 3)
	})
}

// traffic applies the same events to every side until it is stopped.
func traffic(ctx context.Context, stop <-chan struct{}, sides ...*standings) error {
	for n := 0; ; n++ {
		for _, s := range sides {
			if err := s.apply(ctx, s.member(fmt.Sprint("m", n%1200), 1)); err != nil {
				return err
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// Two rows may come from the same event if and only if their ticks have a common millisecond.
func TestTimesAreComparedToTheCoarserTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]codec.Kind{codec.Readable, codec.Wide})
		most := rapid.SampledFrom([]int64{1000, 99_999_999, 2_000_000_000})
		la, err := codec.New(kind.Draw(t, "a"), periods.Weekly.Length(), most.Draw(t, "max a"))
		require.NoError(t, err)
		lb, err := codec.New(kind.Draw(t, "b"), periods.Weekly.Length(), most.Draw(t, "max b"))
		require.NoError(t, err)
		start := int64(1_700_000_000_000)
		end := start + 7*day
		at := rapid.Int64Range(start, end-1)
		rowOf := func(l codec.Layout, at int64) ranking.Row {
			score, err := l.Encode(5, l.Ticks(start, end, at))
			require.NoError(t, err)
			sets := ranking.Sets{Window: ledger.Window{Start: start, End: end}, A: ranking.Set{Layout: l.OfPoints()}}
			d, err := sets.Difference("m", fmt.Sprintf("%.17g", score), "")
			require.NoError(t, err)
			return d.A
		}
		x := at.Draw(t, "x")
		require.True(t, same(rowOf(la, x), rowOf(lb, x), la.Tick, lb.Tick, end), "one event")
		y := at.Draw(t, "y")
		if apart := max(x, y) - min(x, y); apart >= la.Tick+lb.Tick {
			require.False(t, same(rowOf(la, x), rowOf(lb, y), la.Tick, lb.Tick, end))
		}
	})
}

// A window is dropped or its retention ends during the comparison: a member that both sides lose is not a
// difference.
func TestAMemberThatGoesFromBothSidesMeanwhileIsNoDifference(t *testing.T) {
	testenv.SlowEmbedded(t)
	numbers(t, func(t *testing.T, n, m ledger.Shards) {
		a, b := two(t, n, m)
		for _, member := range []string{"m1", "m2"} {
			require.NoError(t, b.client.ZRem(t.Context(), b.key(member), member).Err())
		}
		b.moveTo(t, int(m)-1, b.next+10) // b is at another position, so members that differ are read again
		looked := 0
		a.client.AddHook(eavesdropper(func(args []any) error {
			// A call that reads members by id has the word members before the ids.
			if args[1] == lua.Page.SHA && args[6] == "members" && args[3] == a.key("m1") && slices.Contains(args, any("m1")) && len(args) < 12 {
				looked++
				return a.client.ZRem(t.Context(), a.key("m1"), "m1").Err()
			}
			return nil
		}))
		windows, all := diff(t, a, b, nil)
		require.Positive(t, looked)
		require.Equal(t, "weekly", windows[1].Period)
		require.Len(t, windows[1].Members, 1)
		require.Len(t, all, 1)
		require.Equal(t, "m2", all[0].Member)
	})
}

func TestPositionsAreThoseOfTheShardsFurthestBehindAndAhead(t *testing.T) {
	at := func(texts ...string) (shards []map[string]string) {
		for _, text := range texts {
			l := map[string]string{}
			if text != "" {
				l["points/0"] = text
			}
			shards = append(shards, l)
		}
		return shards
	}
	const sweep = "120..480@00000000000000ff"
	for _, try := range []struct {
		shards []map[string]string
		want   Span
	}{
		{at("10"), Span{"10", "10"}},
		{at(""), Span{"", ""}},
		{at("480", "120"), Span{"120", "480"}},
		{at("480", sweep, "120"), Span{"120", "480"}},
		{at(sweep, "torn:"+sweep), Span{"torn:" + sweep, sweep}},
		{at("120", ""), Span{"", "120"}},
	} {
		require.Equal(t, try.want, span(try.shards, "points/0"), "%v", try.shards)
	}
	ten, others := Span{"10", "10"}, Span{"8", "10"}
	require.True(t, (&Position{A: ten, B: ten}).Same())
	require.False(t, (&Position{A: ten, B: others}).Same())
	require.False(t, (&Position{A: others, B: others}).Same())
}

func TestAPrefixOfSeveralNumbersOfShardsIsThatWhichIsAskedFor(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	four := written(t, client, prefix, 4, codec.Readable, 99_999_999, nil)
	require.Equal(t, ledger.Shards(4), four.view(t, 3).Shards, "the only one")
	two := written(t, client, prefix, 2, codec.Readable, 99_999_999, nil)
	four.view(t, 4)
	two.view(t, 2)
	_, err := inventory.NewView(t.Context(), client, prefix, 3, 20*time.Second)
	var several *inventory.SeveralError
	require.ErrorAs(t, err, &several)
	require.Equal(t, []ledger.Shards{2, 4}, several.Shards)
	one := written(t, client, prefix, 1, codec.Readable, 99_999_999, nil)
	one.view(t, 1)

	require.NoError(t, client.Del(t.Context(), four.stores[2].Keys().Schema()).Err())
	v, err := inventory.NewView(t.Context(), client, prefix, 4, 20*time.Second)
	require.NotNil(t, v, "to be dropped")
	require.ErrorContains(t, err, "shard 2 of 4 has none")
	require.NoError(t, client.Set(t.Context(), four.stores[2].Keys().Schema(), "{}", 0).Err())
	_, err = inventory.NewView(t.Context(), client, prefix, 4, 20*time.Second)
	require.ErrorContains(t, err, "shard 2 of 4 has another one than the others")
	// If the schema of the first shard is lost, boards with another number of shards aren't used in its
	// place.
	require.NoError(t, client.Del(t.Context(), four.stores[0].Keys().Schema()).Err())
	_, err = inventory.NewView(t.Context(), client, prefix, 4, 20*time.Second)
	require.ErrorContains(t, err, "shard 0 of 4 has none")
}
