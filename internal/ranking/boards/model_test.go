package boards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

var numbers = []ledger.Shards{1, 2, 3, 5, 16}

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
