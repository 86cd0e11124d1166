package boards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

var numbers = []ledger.Shards{1, 2, 3, 5, 16}

// All shards together behave as one sorted list, whatever the members' shards: more points first, then the
// earlier tick, then the greater id.
func TestAllShardsTogetherAreOneSortedList(t *testing.T) {
	client, prefix, n := testenv.RedisClient(t), testenv.Prefix(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		of := rapid.SampledFrom(numbers).Draw(t, "shards")
		kind := rapid.SampledFrom([]codec.Kind{codec.Readable, codec.Wide}).Draw(t, "layout")
		f := newFixture(t, client, fmt.Sprint(prefix, n), of, kind)
		var all []ranking.Standing
		// A name may be a prefix of another, and all members may be on one shard.
		short := rapid.StringOfN(rapid.SampledFrom([]rune("abB-é")), 1, 4, -1)
		names := rapid.OneOf(rapid.StringN(1, 8, 64), short)
		if rapid.Bool().Draw(t, "on one shard") {
			names = names.Filter(func(id string) bool { return f.home(id) == 0 })
		}
		ids := rapid.SliceOfNDistinct(names, 0, 60, rapid.ID).Draw(t, "ids")
		for _, id := range ids {
			all = append(all, f.standing(id, rapid.Int64Range(-2, 2).Draw(t, "points"), rapid.Int64Range(0, 2).Draw(t, "ticks")))
		}
		f.put(t, all...)
		all = ranked(all)

		offset, limit := rapid.IntRange(0, 70).Draw(t, "offset"), rapid.IntRange(0, 70).Draw(t, "limit")
		for name, top := range map[string]func() (ranking.Board, error){
			"merged":   func() (ranking.Board, error) { return f.Top(t.Context(), "global", f.window, offset, limit) },
			"searched": func() (ranking.Board, error) { return f.farDown(t.Context(), f.any(), offset, limit) },
		} {
			if name == "searched" && (of == 1 || limit == 0) {
				continue
			}
			b, err := top()
			require.NoError(t, err, name)
			require.Equal(t, cut(all, offset, limit), b.Standings, name)
			require.Equal(t, int64(len(all)), b.Members)
			require.Equal(t, len(all) > 0, b.Listed)
			require.Empty(t, b.Lost)
			require.Equal(t, map[string]string{"points/0": "10"}, b.Beside.Ledger)
		}

		byID := map[string]ranking.Standing{}
		for _, st := range all {
			byID[st.Member] = st
		}
		asked := append(rapid.Permutation(ids).Draw(t, "asked"), "nobody at all", "nobody else")
		var want []ranking.Standing
		for _, id := range asked {
			st := byID[id]
			st.Member = id
			want = append(want, st)
		}
		b, err := f.Rank(t.Context(), "global", f.window, asked...)
		require.NoError(t, err)
		require.Equal(t, want, b.Standings)
		require.Equal(t, int64(len(all)), b.Members)

		id, around := rapid.SampledFrom(asked).Draw(t, "member"), rapid.IntRange(0, 70).Draw(t, "around")
		b, err = f.Around(t.Context(), "global", f.window, id, around)
		require.NoError(t, err)
		if at := int(byID[id].Rank) - 1; at >= 0 {
			from := max(0, at-around)
			require.Equal(t, cut(all, from, at+around+1-from), b.Standings)
		} else {
			require.Equal(t, []ranking.Standing{{Member: id}}, b.Standings)
		}
	})
}

// Many members may have equal scores. Their ids decide the order, by bytes and over all shards.
func TestPagesOfABoardThatStandsStillNeitherRepeatNorSkip(t *testing.T) {
	testenv.SlowEmbedded(t)
	client := testenv.RedisClient(t)
	members := 12_000
	if testing.Short() {
		members = 4500 // still enough for pages by search
	}
	for _, c := range []struct {
		of     ledger.Shards
		scores int64
	}{{2, 1}, {3, 7}, {5, 1 << 40}, {16, 100}, {16, 1}} {
		t.Run(fmt.Sprintf("%d shards, %d scores", c.of, c.scores), func(t *testing.T) {
			f := newFixture(t, client, testenv.Prefix(t), c.of, codec.Readable)
			var all []ranking.Standing
			for i := range members {
				n := int64(i) * 7919 % c.scores
				all = append(all, f.standing(fmt.Sprintf("%s-%d", strings.Repeat("x", i%3), i), n%500, n%977))
			}
			f.put(t, all...)
			all = ranked(all)
			const limit = 1100
			var pages []ranking.Standing
			for offset := 0; offset < len(all)+limit; offset += limit {
				b, err := f.Top(t.Context(), "global", f.window, offset, limit)
				require.NoError(t, err)
				pages = append(pages, b.Standings...)
			}
			require.Equal(t, all, pages)
			for _, offset := range []int{2001, members/2 - 1, members - 10, members - 1, members, members + 8000} {
				b, err := f.Top(t.Context(), "global", f.window, offset, 10)
				require.NoError(t, err)
				require.Equal(t, cut(all, offset, 10), b.Standings, "from %d on", offset)
			}
			for _, i := range []int{0, 1, members / 2, members - 1} {
				b, err := f.Around(t.Context(), "global", f.window, all[i].Member, 3)
				require.NoError(t, err)
				require.Equal(t, cut(all, max(0, i-3), min(i, 3)+4), b.Standings)
			}
		})
	}
}
