package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// with is the fixture's store with more periods, for a reader or a consumer.
func (f *fixture) with(t *testing.T, cluster string, more ...periods.Rule) *Store {
	t.Helper()
	return f.storeOf(t, func(c *Config) {
		c.Cluster = cluster
		for _, r := range more {
			layout, err := codec.New(codec.Readable, r.Length(), 99_999_999)
			require.NoError(t, err)
			c.Periods[r.Name()] = Period{Rule: r, Layout: layout, Retention: retention}
		}
	})
}

func (f *fixture) state(t *testing.T) ledger.State {
	t.Helper()
	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	return st
}

func TestAPeriodWhoseWindowsLieAheadIsAddedToWhatIsThere(t *testing.T) {
	f := fixed(t)
	f.add(t, f.member("u1", 7))
	whole := time.Now().Truncate(time.Second)
	season, err := periods.Season("season", whole.Add(3*time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	sprint, err := periods.Stretches("sprint", time.Hour, whole.Add(4*time.Hour).UnixMilli())
	require.NoError(t, err)
	now := f.with(t, "c1", season, sprint)
	st := f.state(t)

	added, err := now.Adds(&st, 2*time.Hour)
	require.Empty(t, added)
	require.ErrorContains(t, err, "more than max_future and an hour from now", "it starts in three hours")
	added, err = now.Adds(&st, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []string{"season", "sprint"}, added)

	added, err = now.Extend(t.Context(), &st, 2*time.Hour)
	require.Empty(t, added)
	require.ErrorContains(t, err, "more than max_future and an hour from now", "it starts in three hours")
	require.ErrorContains(t, err, "periods.season.enabled is false in Redis, true here")
	require.Equal(t, f.store.schema, f.state(t).Schema, "nothing was written")

	added, err = now.Extend(t.Context(), &st, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []string{"season", "sprint"}, added)
	require.Equal(t, now.schema, f.state(t).Schema)
	added, err = now.Extend(t.Context(), &st, time.Hour) // another replica, which had read the state before
	require.NoError(t, err)
	require.Equal(t, []string{"season", "sprint"}, added)

	// Whoever isn't configured with them writes nothing any more, and readers go on.
	p := f.newPiece()
	p.Groups = f.piece.Groups
	answer, _, err := f.store.Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.OtherSchema, answer.Outcome)
	window := periods.Window{Period: periods.Weekly, Name: p.Windows[0].Name, Start: p.Windows[0].Start, End: p.Windows[0].End}
	for _, reader := range []*Store{f.with(t, ""), f.with(t, "", season)} {
		b, err := reader.Top(t.Context(), p.Windows[0].Board, window, 0, 10)
		require.NoError(t, err)
		require.Len(t, b.Standings, 1)
	}
	later, err := periods.Season("later", whole.Add(3*time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	_, err = f.with(t, "", season, sprint, later).Top(t.Context(), p.Windows[0].Board, window, 0, 10)
	require.ErrorAs(t, err, new(*SchemaError), "nothing says that what the reader is to show is counted")
}

func TestWhatMayHaveBeenCountedAlreadyIsNotAdded(t *testing.T) {
	f := fixed(t)
	whole := time.Now().Truncate(time.Second)
	begun, err := periods.Season("begun", whole.Add(-time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	calendar, err := periods.ByCalendar("mine", periods.Daily, periods.Calendar{})
	require.NoError(t, err)
	ahead, err := periods.Season("ahead", whole.Add(5*time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	for _, rules := range [][]periods.Rule{{begun}, {calendar}, {ahead, begun}} {
		st := f.state(t)
		other := new(SchemaError)
		_, err := f.with(t, "c1", rules...).Extend(t.Context(), &st, 0)
		require.ErrorAs(t, err, &other)
		require.True(t, other.TooLate)
	}
	// Any other difference is left to be refused: a built-in period, another layout, one less.
	for _, change := range []func(*Config){
		func(c *Config) { c.Periods[periods.Daily] = c.Periods[periods.Weekly] },
		func(c *Config) { delete(c.Periods, periods.Yearly) },
		func(c *Config) { c.Cluster = "c2" },
	} {
		st := f.state(t)
		added, err := f.storeOf(t, change).Extend(t.Context(), &st, 0)
		require.NoError(t, err)
		require.Empty(t, added)
	}
	st := f.state(t)
	require.Equal(t, f.store.schema, st.Schema, "nothing was written")
	added, err := f.with(t, "c1", ahead).Extend(t.Context(), &ledger.State{}, 0)
	require.NoError(t, err)
	require.Empty(t, added, "nothing is there yet: the first start writes it all")
	st.Schema = f.with(t, "c1", ahead).schema // and who has read what is gone since
	_, err = f.with(t, "c1", ahead, begun).Extend(t.Context(), &st, 0)
	require.ErrorAs(t, err, new(*SchemaError))
}
