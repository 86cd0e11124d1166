package ranking

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
)

// lateness keeps every window open for the duration of a test: a window may have ended up to an hour before
// the test.
func lateness(string) time.Duration { return 24 * time.Hour }

func TestTheLargestPointsAreThoseOfAllBoardsEitherSideOfZero(t *testing.T) {
	for _, kind := range kinds {
		f := fixedAs(t, kind, 99_999_999)
		got, err := f.store.Largest(t.Context(), lateness, 0)
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"weekly": 0, "monthly": 0, "yearly": 0}, got, "nothing is listed")

		for _, standing := range []struct {
			board  string
			points int64
			want   int64
		}{
			{"global", 5, 5}, {"eu", 700, 700}, {"eu", -600, 700}, {"us", -90_000, 90_000}, {"global", 99_999_999, 99_999_999},
		} {
			p := f.newPiece()
			for i := range p.Windows {
				p.Windows[i].Board = standing.board
			}
			p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{
				{ID: fmt.Appendf(nil, "member-%d", standing.points), Points: standing.points, Time: f.now},
			}}}
			answer, _, err := f.store.Apply(t.Context(), &p)
			require.NoError(t, err)
			require.Equal(t, ledger.Applied, answer.Outcome)
			f.next += 10
			got, err := f.store.Largest(t.Context(), lateness, 0)
			require.NoError(t, err)
			require.Equal(t, map[string]int64{"weekly": standing.want, "monthly": standing.want, "yearly": standing.want}, got, "%v after %+v", kind, standing)
		}
	}
}

// A window that accepts no events can't get closer to the limit.
func TestWindowsThatTakeNothingAreNotLookedAt(t *testing.T) {
	f := offlineFixture(t)
	now := time.Now().UnixMilli()
	listing := func(end int64) string { return entry(end-1000, end, end+day) }
	for _, w := range []struct {
		name, listing string
		open          bool
	}{
		{"global:weekly:2026-W47", listing(now + day), true},
		{"global:weekly:2026-W46", listing(now - day/48), true}, // ended half an hour ago
		{"global:weekly:2026-W45", listing(now - day/12), false},
		{"global:daily:2026-11-21", listing(now + day), false}, // not a configured period
		{"global", listing(now + day), false},
		{"global:weekly:2026-W47", "soup", false},
		{"global:weekly:2026-W47", `{"end":1,"start":0}`, false},
	} {
		_, open := f.store.takes(w.name, w.listing, func(string) time.Duration { return time.Hour })
		require.Equal(t, w.open, open, "%s %s", w.name, w.listing)
	}
}

func TestScoresOfAnotherSchemaAreNotGuessedAt(t *testing.T) {
	f := fixed(t)
	p := f.newPiece()
	p.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{{ID: []byte("m"), Points: 5, Time: f.now}}}}
	_, _, err := f.store.Apply(t.Context(), &p)
	require.NoError(t, err)
	f.use(t, codec.Wide, 99_999_999)
	_, err = f.store.Largest(t.Context(), lateness, 0)
	require.ErrorAs(t, err, new(*SchemaError))
}
