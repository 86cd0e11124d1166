package reshard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// passedText returns "from-to,…" in Unix µs.
func passedText(all []ranking.Passed) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = fmt.Sprintf("%d-%d", p.From.UnixMicro(), p.To.UnixMicro())
	}
	return strings.Join(texts, ",")
}

// Final windows stay final, also on shards that have none of their members. A window that was sealed on
// some of the shards is not final, and is not final in the copy.
func TestAReshardTakesSealsAlong(t *testing.T) {
	t.Parallel()
	for _, numbers := range [][2]ledger.Shards{{1, 4}, {4, 1}, {3, 5}} {
		t.Run(fmt.Sprint(numbers), func(t *testing.T) {
			t.Parallel()
			from, to := numbers[0], numbers[1]
			f := begun(t, from, codec.Readable)
			f.now = f.now.AddDate(0, 0, -10)
			random := rand.New(rand.NewPCG(5, 6))
			f.add(t, random, "global", 60)
			f.add(t, random, "eu", 2)
			f.add(t, random, "us", 60)
			before := map[ledger.Partition]int64{}
			for _, p := range partitions {
				before[p] = 100
			}
			lateness := func(w ledger.Window) (time.Duration, bool) { return 24 * time.Hour, w.Period == "weekly" }
			due, err := f.of(from).Due(t.Context(), time.Now(), time.Now(), lateness, 0)
			require.NoError(t, err)
			require.Len(t, due, 3)
			sealed, err := f.of(from).Seal(t.Context(), before, due)
			require.NoError(t, err)
			require.Len(t, sealed.Final, 3)
			us := f.windows(t, "us")[0]
			_, err = f.of(from).Shards()[from-1].Unseal(t.Context(), us.Listing(), time.Now(), "a test")
			require.NoError(t, err)

			// All shards have a record of another window that names the events that it missed.
			span := func(s *ranking.Store) (string, map[string]string) {
				final, err := s.Hash(t.Context(), s.Keys().Final(), "", 0)
				require.NoError(t, err)
				r, err := ranking.ParseSealRecord(final[f.windows(t, "global")[0].Listing()])
				require.NoError(t, err)
				return passedText(r.Passed), final
			}
			var spans []string
			for _, s := range f.of(from).Shards() {
				_, err := s.Unseal(t.Context(), f.windows(t, "global")[0].Listing(), time.Now(), "a test")
				require.NoError(t, err)
				text, _ := span(s)
				spans = append(spans, text)
			}
			due, err = f.of(from).Due(t.Context(), time.Now(), time.Now(), lateness, 0)
			require.NoError(t, err)
			due = slices.DeleteFunc(due, func(d boards.Due) bool { return d.Board != "global" })
			_, err = f.of(from).Seal(t.Context(), before, due)
			require.NoError(t, err)

			_, err = f.job(t, to).Run(t.Context())
			require.NoError(t, err)
			for i, s := range f.of(to).Shards() {
				text, final := span(s)
				of := from.Overlapping(i, to)
				if len(of) == 1 {
					require.Equal(t, spans[of[0]], text)
					from, to, _ := strings.Cut(text, "-")
					require.Contains(t, final, "@"+from)
					require.Contains(t, final, "@"+to)
				} else {
					require.Regexp(t, `^0-\d{16}$`, text, "of several shards nothing says which events")
				}
				seal, err := s.SealOf(t.Context(), us.Listing())
				require.NoError(t, err)
				require.Equal(t, of[0] != int(from)-1, seal.Unknown, "all shards but the last had it final")
			}
			w, err := periods.Calendar{}.At(periods.Weekly, f.now.UnixMilli())
			require.NoError(t, err)
			for _, board := range []string{"global", "eu", "us"} {
				b, err := f.of(to).Top(t.Context(), board, w, 0, 10)
				require.NoError(t, err)
				require.Empty(t, b.Lost)
				require.Equal(t, map[string]int64{"global": 2, "eu": 1, "us": 0}[board], b.Revision, board)
			}
			for _, s := range f.of(to).Shards() {
				listings, err := s.Listings(t.Context())
				require.NoError(t, err)
				require.Contains(t, listings[f.windows(t, "eu")[0].Listing()], `"final":1,`)
				require.NotContains(t, listings[us.Listing()], "final")
				final, err := s.Hash(t.Context(), s.Keys().Final(), "", 0)
				require.NoError(t, err)
				require.Contains(t, final[us.Listing()], `"revision":1`)
				if from == 1 {
					require.Contains(t, final[us.Listing()], "reopened")
				}
				lost, err := s.Lost(t.Context())
				require.NoError(t, err)
				require.Empty(t, lost)
				require.EqualValues(t, -1, f.client.PTTL(t.Context(), s.Keys().Final()).Val(), "what is final expires")
			}
			due, err = f.of(to).Due(t.Context(), time.Now(), time.Now(), lateness, 0)
			require.NoError(t, err)
			require.Len(t, due, 1)
			sealed, err = f.of(to).Seal(t.Context(), before, due)
			require.NoError(t, err)
			require.Equal(t, []string{us.Listing()}, sealed.Final)
			b, err := f.of(to).Top(t.Context(), "us", w, 0, 10)
			require.NoError(t, err)
			require.Equal(t, int64(2), b.Revision)
			for of, want := range map[ledger.Shards]int{from: 0, to: 1} {
				for _, s := range f.of(of).Shards() {
					require.EqualValues(t, want, f.client.Exists(t.Context(), s.Keys().Final()).Val(), "of %d shards", int(of))
				}
			}
		})
	}
}
