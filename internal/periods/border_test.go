package periods_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/periods"
)

// settled are borders by other rules of a zone.
type settled map[periods.Border]int64

func (s settled) At(b periods.Border) (int64, bool) { ms, ok := s[b]; return ms, ok }

// TestAWindowKeepsTheBordersThatItWasOpenedWith: by the old rules, Edmonton would turn its clock back in
// November 2026; by the new rules it doesn't. The November that was opened by the old rules ends an hour
// later.
func TestAWindowKeepsTheBordersThatItWasOpenedWith(t *testing.T) {
	rule := periods.BuiltIn(periods.Monthly, calendar(t, "America/Edmonton", "monday"))
	start, end, ok := rule.Borders("2026-11")
	require.True(t, ok)
	require.Equal(t, "monthly America/Edmonton 2026-11-01", start.String())
	require.Equal(t, "monthly America/Edmonton 2026-12-01", end.String())
	parsed, ok := periods.ParseBorder(end.String())
	require.True(t, ok)
	require.Equal(t, end, parsed)
	for _, c := range []struct{ settled, at, name, start, end string }{
		{"", "2026-12-01T06:30:00Z", "2026-12", "2026-12-01T06:00:00Z", "2027-01-01T06:00:00Z"},
		{"2026-12-01T07:00:00Z", "2026-12-01T06:30:00Z", "2026-11", "2026-11-01T06:00:00Z", "2026-12-01T07:00:00Z"},
		{"2026-12-01T07:00:00Z", "2026-12-01T07:00:00Z", "2026-12", "2026-12-01T07:00:00Z", "2027-01-01T06:00:00Z"},
		{"2026-12-01T05:00:00Z", "2026-12-01T05:30:00Z", "2026-12", "2026-12-01T05:00:00Z", "2027-01-01T06:00:00Z"},
		{"2026-12-01T05:00:00Z", "2026-11-30T12:00:00Z", "2026-11", "2026-11-01T06:00:00Z", "2026-12-01T05:00:00Z"},
	} {
		known := settled{}
		if c.settled != "" {
			known[end] = instant(t, c.settled)
		}
		bound := rule.By(known)
		w, _, err := bound.At(instant(t, c.at))
		require.NoError(t, err)
		require.Equal(t, []string{c.name, c.start, c.end}, []string{w.Name, utc(w.Start), utc(w.End)})
		named, err := bound.Named(c.name)
		require.NoError(t, err)
		require.Equal(t, w, named)
	}
}

func TestWindowsTileTimeWhicheverBordersAreSettled(t *testing.T) {
	for _, p := range periods.All() {
		rule := periods.BuiltIn(p, calendar(t, "America/Edmonton", "sunday"))
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 7))
			known := settled{}
			w, _, err := rule.At(instant(t, "2025-06-15T12:00:00Z"))
			require.NoError(t, err)
			for range 30 {
				if start, _, ok := rule.Borders(w.Name); ok && random.IntN(2) == 0 {
					known[start] = w.Start + random.Int64N(periods.MaxShift) - periods.MaxShift/2
				}
				next, ok := rule.Next(w)
				if !ok {
					break
				}
				w = next
			}
			bound := rule.By(known)
			for range 500 {
				ms := instant(t, "2025-05-01T00:00:00Z") + random.Int64N(60*periods.MaxShift)
				w, _, err := bound.At(ms)
				require.NoError(t, err)
				require.True(t, w.Start <= ms && ms < w.End, "%v at %d", w, ms)
				named, err := bound.Named(w.Name)
				require.NoError(t, err)
				require.Equal(t, w, named)
				if next, ok := bound.Next(w); ok {
					require.Equal(t, w.End, next.Start)
					before, _ := bound.Previous(next)
					require.Equal(t, w, before)
				}
			}
		}
	}
}

func TestOnlyWindowsThatATimeZoneCutsHaveBorders(t *testing.T) {
	season, err := periods.Season("cup", 0, 1000)
	require.NoError(t, err)
	stretches, err := periods.Stretches("sprint", 3_600_000_000_000, 0)
	require.NoError(t, err)
	berlin := calendar(t, "Europe/Berlin", "monday")
	for _, r := range []periods.Rule{season, stretches, periods.BuiltIn(periods.AllTime, berlin), periods.BuiltIn(periods.Weekly, periods.Calendar{})} {
		_, _, ok := r.Borders("all")
		require.False(t, ok || r.Zoned(), r.String())
	}
	weekly := periods.BuiltIn(periods.Weekly, berlin)
	start, end, ok := weekly.Borders("2026-W53")
	require.True(t, ok)
	require.Equal(t, "weekly Europe/Berlin 2026-12-28, weekly Europe/Berlin 2027-01-04", start.String()+", "+end.String())
	_, _, ok = weekly.Borders("2026-W54")
	require.False(t, ok)
}
