package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// lists returns a store like the fixture's whose boards list their periods.
func (f *fixture) lists(t *testing.T, cluster string, of map[string][]periods.Period, change ...func(*Config)) *Store {
	t.Helper()
	return f.storeOf(t, func(c *Config) {
		c.Cluster, c.Lists = cluster, of
		for _, one := range change {
			one(c)
		}
	})
}

// extends lets a store add what Redis lacks, and returns the names of what it added and of what is
// incomplete.
func (f *fixture) extends(t *testing.T, s *Store) (added, partly []string) {
	t.Helper()
	st := f.state(t)
	all, err := s.Extend(t.Context(), &st, time.Hour)
	require.NoError(t, err)
	for _, a := range all {
		if added = append(added, a.String()); a.Since > 0 {
			partly = append(partly, a.String())
		}
	}
	require.NoError(t, s.CheckSchema(f.state(t).Schema))
	return added, partly
}

// lacks returns the incomplete windows of boards, by board and period: of the current windows and the next
// ones.
func (f *fixture) lacks(t *testing.T, s *Store, names ...string) (all []string) {
	t.Helper()
	for _, board := range names {
		for i, p := range []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly} {
			w := f.window(i)
			for _, when := range []string{"", "next "} {
				b, err := s.Top(t.Context(), board, w, 0, 10)
				require.NoError(t, err)
				if len(b.Incomplete) > 0 {
					require.Equal(t, []string{"events/3"}, b.Incomplete)
					all = append(all, when+string(p)+" of "+board)
				}
				w = f.windowAt(t, p, w.End+2*time.Hour.Milliseconds()+10*day)
			}
		}
	}
	return all
}

func (f *fixture) windowAt(t *testing.T, p periods.Period, at int64) periods.Window {
	t.Helper()
	w, err := (periods.Calendar{}).At(p, at)
	require.NoError(t, err)
	return w
}

type lists = map[string][]periods.Period

const (
	weekly, monthly, yearly = periods.Weekly, periods.Monthly, periods.Yearly
	others                  = rules.AnyBoard
)

func TestAPeriodThatIsAddedToTheListOfOneBoardIsIncompleteThere(t *testing.T) {
	f := fixed(t)
	f.add(t, f.member("u1", 7))
	first := f.lists(t, "c1", lists{"arena": {weekly}, "lap": {weekly, monthly}})
	added, partly := f.extends(t, first)
	require.Equal(t, []string{"weekly of board arena", "monthly of board lap", "weekly of board lap"}, added)
	require.Empty(t, partly, "a board that is listed has been counted in all periods so far")
	require.Empty(t, f.state(t).Since)

	second := f.lists(t, "c1", lists{"arena": {weekly, monthly}, "lap": {weekly, monthly}})
	st := f.state(t)
	require.Equal(t, "monthly of board arena", second.Adds(&st, time.Hour)[0].String())
	f.extends(t, second)
	added, _ = f.extends(t, second)
	require.Empty(t, added, "once")
	require.Equal(t, []string{"monthly of arena"}, f.lacks(t, second, "arena", "lap", "global"))
	require.InDelta(t, time.Now().Add(2*time.Hour).UnixMilli(), f.state(t).Since["arena:monthly"], 60_000)

	// A consumer that lacks the period writes nothing any more and names it.
	require.Equal(t, ledger.OtherSchema, f.appliesBy(t, first))
	require.ErrorContains(t, first.CheckSchema(f.state(t).Schema), "also have the periods monthly of board arena, which this configuration lacks")
	require.ErrorContains(t, f.store.CheckSchema(f.state(t).Schema), "also have the periods monthly of board arena, weekly of board arena, monthly of board lap, weekly of board lap")
	require.Equal(t, ledger.Applied, f.appliesBy(t, second))

	// Readers that lack the period continue. A reader that has a period that isn't counted fails.
	for _, of := range []lists{nil, {"arena": {weekly}}, {"arena": {weekly, monthly}, "new": {yearly}}} {
		_, err := f.lists(t, "", of).Top(t.Context(), "arena", f.window(0), 0, 10)
		require.NoError(t, err)
	}
	_, err := f.lists(t, "", lists{"arena": {weekly, monthly, yearly}}).Top(t.Context(), "arena", f.window(0), 0, 10)
	require.ErrorAs(t, err, new(*SchemaError))
	require.ErrorContains(t, err, "boards.arena.periods is")

	// A consumer whose configuration doesn't allow the board counts nothing there. It continues whatever
	// the others add.
	only := func(c *Config) { c.Allows = func(board string) bool { return board == "new" } }
	without := f.lists(t, "c1", lists{"new": {weekly}}, only)
	require.Equal(t, ledger.OtherSchema, f.appliesBy(t, without))
	added, partly = f.extends(t, without)
	require.Equal(t, []string{"weekly of board new"}, added)
	require.Empty(t, partly)
	second = f.lists(t, "c1", lists{"arena": {weekly, monthly}, "lap": {weekly, monthly}, "new": {weekly}})
	for range 2 {
		for _, s := range []*Store{without, second} {
			added, _ = f.extends(t, s)
			require.Empty(t, added)
			require.Equal(t, ledger.Applied, f.appliesBy(t, s))
		}
	}
}

// appliesBy applies a piece with a store.
func (f *fixture) appliesBy(t *testing.T, s *Store) ledger.Outcome {
	t.Helper()
	p := f.newPiece()
	p.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u1", 7)}}}
	answer, _, err := s.Apply(t.Context(), &p)
	require.NoError(t, err)
	if answer.Outcome == ledger.Applied {
		f.next = p.Next.From
	}
	return answer.Outcome
}

func TestAPeriodThatIsAddedToBoardsThatAreNotNamedIsCompleteWhereItWasListed(t *testing.T) {
	f := fixed(t)
	f.add(t, f.member("u1", 7))
	f.extends(t, f.lists(t, "c1", lists{"arena": {weekly, monthly}, others: {weekly}}))
	now := f.lists(t, "c1", lists{"arena": {weekly, monthly}, "lap": {weekly, monthly}, others: {weekly, monthly}})
	added, partly := f.extends(t, now)
	require.Equal(t, []string{"monthly of board *", "monthly of board lap", "weekly of board lap"}, added)
	require.Equal(t, []string{"monthly of board *", "monthly of board lap"}, partly)
	require.Equal(t, []string{"monthly of lap", "monthly of any"}, f.lacks(t, now, "arena", "lap", "any"))
}

func TestAPeriodOfAllBoardsIsNoAdditionToTheListsThatHaveIt(t *testing.T) {
	f := fixed(t)
	f.add(t, f.member("u1", 7))
	f.extends(t, f.lists(t, "c1", lists{"arena": {weekly}}))
	daily := func(c *Config) { c.Periods[periods.Daily] = c.Periods[periods.Weekly] }
	now := f.lists(t, "c1", lists{"arena": {weekly, periods.Daily}}, daily)
	added, partly := f.extends(t, now)
	require.Equal(t, []string{"daily"}, added)
	require.Equal(t, added, partly)
	for _, board := range []string{"arena", "global"} {
		b, err := now.Top(t.Context(), board, f.windowAt(t, periods.Daily, f.now), 0, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"events/3"}, b.Incomplete)
	}
	require.ErrorContains(t, f.lists(t, "c1", lists{"arena": {weekly}}).CheckSchema(f.state(t).Schema), "also have the periods daily, which")
}
