package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// with returns the fixture's store with additional periods, for a reader or a consumer.
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

// incomplete returns the partitions from which a window lacks events.
func (f *fixture) incomplete(t *testing.T, s *Store, w periods.Window) []string {
	t.Helper()
	b, err := s.Top(t.Context(), "global", w, 0, 10)
	require.NoError(t, err)
	return b.Incomplete
}

func TestAPeriodIsAddedAtAnyTimeAndItsWindowsThatHaveBegunAreIncomplete(t *testing.T) {
	f := fixed(t)
	f.add(t, f.member("u1", 7))
	whole := time.Now().Truncate(time.Second)
	begun, err := periods.Season("begun", whole.Add(-time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	soon, err := periods.Stretches("soon", time.Hour, whole.Add(150*time.Minute).UnixMilli())
	require.NoError(t, err)
	later, err := periods.Season("later", whole.Add(4*time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	mine, err := periods.ByCalendar("mine", periods.Daily, periods.Calendar{})
	require.NoError(t, err)
	daily, forever := periods.BuiltIn(periods.Daily, periods.Calendar{}), periods.BuiltIn(periods.AllTime, periods.Calendar{})
	all := []periods.Rule{daily, forever, begun, soon, later, mine}
	now := f.with(t, "c1", all...)
	st := f.state(t)

	names := func(added []ledger.Added) (all, partly []string) {
		for _, a := range added {
			all = append(all, a.Period)
			if a.Since > 0 {
				require.InDelta(t, time.Now().Add(3*time.Hour).UnixMilli(), a.Since, 60_000, "max_future and an hour from now")
				partly = append(partly, a.Period)
			}
		}
		return all, partly
	}
	wantAll, wantPartly := []string{"all-time", "begun", "daily", "later", "mine", "soon"}, []string{"all-time", "begun", "daily", "mine", "soon"}
	every, partly := names(now.Adds(&st, 2*time.Hour))
	require.Equal(t, wantAll, every)
	require.Equal(t, wantPartly, partly)
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Hold(), "rebuild", 0).Err())
	_, err = now.Extend(t.Context(), &st, 2*time.Hour)
	require.ErrorIs(t, err, errHeldUp)
	require.Equal(t, ledger.Retry, Classify(err))
	f.del(t, f.store.keys.Hold())
	require.Equal(t, f.store.Schema(), f.state(t).Schema, "nothing was written")

	for range 2 { // the second time as another replica, which had read the state before
		before := st
		added, err := now.Extend(t.Context(), &before, 2*time.Hour)
		require.NoError(t, err)
		every, partly = names(added)
		require.Equal(t, wantAll, every)
		require.Equal(t, wantPartly, partly)
	}
	extended := f.state(t)
	require.Equal(t, now.Schema(), extended.Schema)
	require.Equal(t, st.Origins, extended.Origins)
	require.Len(t, extended.Since, len(wantPartly))
	require.NotContains(t, extended.Since, "later")

	// A window is incomplete if it starts before the last possible event that was counted without it. That
	// includes a window that has ended and still accepts events, and one that starts within max_future plus
	// an hour.
	for _, r := range []periods.Rule{daily, mine} {
		w, ok, err := r.Latest(f.now)
		require.NoError(t, err)
		require.True(t, ok)
		before, ok := r.Previous(w)
		require.True(t, ok)
		require.Equal(t, []string{"events/3"}, f.incomplete(t, now, before))
		require.Equal(t, []string{"events/3"}, f.incomplete(t, now, w))
		for w.Start < extended.Since[string(r.Name())] {
			w, _ = r.Next(w)
		}
		require.Empty(t, f.incomplete(t, now, w))
	}
	for _, r := range []periods.Rule{forever, begun, soon} {
		w, ok, err := r.Latest(whole.Add(150 * time.Minute).UnixMilli())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []string{"events/3"}, f.incomplete(t, now, w), "%s", r.Name())
	}
	first, _ := later.First()
	require.Empty(t, f.incomplete(t, now, first))
	require.Empty(t, f.incomplete(t, now, f.window(0)), "the periods that were there lack nothing")

	// A consumer that lacks the periods writes nothing any more and names them. Readers continue.
	p := f.newPiece()
	p.Groups = f.piece.Groups
	answer, _, err := f.store.Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.OtherSchema, answer.Outcome)
	require.ErrorContains(t, f.store.CheckSchema(answer.Found), "also have the periods all-time, begun, daily, later, mine, soon, which this configuration lacks")
	for _, reader := range []*Store{f.with(t, ""), f.with(t, "", begun)} {
		b, err := reader.Top(t.Context(), "global", f.window(0), 0, 10)
		require.NoError(t, err)
		require.Len(t, b.Standings, 1)
	}
	more, err := periods.Season("more", whole.Add(3*time.Hour).UnixMilli(), whole.Add(9*time.Hour).UnixMilli())
	require.NoError(t, err)
	_, err = f.with(t, "", append(all, more)...).Top(t.Context(), "global", f.window(0), 0, 10)
	require.ErrorAs(t, err, new(*SchemaError), "nothing says that what the reader is to show is counted")
}

func TestAnotherDifferenceThanMorePeriodsAddsNothing(t *testing.T) {
	f := fixed(t)
	more := periods.BuiltIn(periods.Daily, periods.Calendar{})
	for _, change := range []func(*Config){
		func(c *Config) { delete(c.Periods, periods.Yearly) },
		func(c *Config) { c.Cluster = "c2" },
		func(c *Config) {
			layout, err := codec.New(codec.Wide, periods.Weekly.Length(), 99_999_999)
			require.NoError(t, err)
			c.Periods[periods.Weekly] = Period{Layout: layout, Retention: retention}
		},
	} {
		st := f.state(t)
		store := f.storeOf(t, func(c *Config) {
			c.Periods[periods.Daily] = Period{Rule: more, Layout: c.Periods[periods.Weekly].Layout, Retention: retention}
			change(c)
		})
		added, err := store.Extend(t.Context(), &st, 0)
		require.NoError(t, err)
		require.Empty(t, added)
	}
	st := f.state(t)
	require.Equal(t, f.store.Schema(), st.Schema, "nothing was written")
	require.Empty(t, st.Since)
	added, err := f.with(t, "c1", more).Extend(t.Context(), &ledger.State{}, 0)
	require.NoError(t, err)
	require.Empty(t, added, "nothing is there yet: the first start writes it all")
}
