package ranking

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// zonedFixture returns a fixture with months in Berlin's time zone, and the current month.
func zonedFixture(t *testing.T) (*fixture, periods.Window) {
	t.Helper()
	f := fixed(t)
	berlin, err := periods.NewCalendar("Europe/Berlin", "monday")
	require.NoError(t, err)
	f.store = f.storeOf(t, func(c *Config) { c.Calendar = berlin })
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Schema(), f.store.Schema(), 0).Err())
	w, err := berlin.At(periods.Monthly, time.Now().UnixMilli())
	require.NoError(t, err)
	return f, w
}

// bordersOf returns a window's borders, to be settled at its start and end.
func (f *fixture) bordersOf(w periods.Window) []ledger.Border {
	p, _ := f.store.Period(string(w.Period))
	start, end, _ := p.Rule.Borders(w.Name)
	keep := w.End + 100*day
	return []ledger.Border{{Name: start.String(), At: w.Start, Keep: keep}, {Name: end.String(), At: w.End, Keep: keep}}
}

func TestABorderIsKeptAsLongAsAWindowNeedsIt(t *testing.T) {
	f, w := zonedFixture(t)
	all := f.bordersOf(w)
	all[0].Keep = 1 // over
	got, err := f.store.Settle(t.Context(), all, false)
	require.NoError(t, err)
	require.Equal(t, []ledger.Settled{{}, {At: w.End, OK: true}}, got)
	most := all[1].Keep + 5
	for _, keep := range []int64{most, 7} {
		all[1].Keep = keep
		_, err = f.store.Settle(t.Context(), all[1:], false)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d %d", w.End, most), f.client.HGet(t.Context(), f.store.keys.Borders(), all[1].Name).Val())
	}
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Borders(), "daily Europe/Berlin 2001-01-01", "5 7").Err())
	all[0].Keep = most
	_, err = f.store.Settle(t.Context(), all, false)
	require.NoError(t, err)
	borders, err := f.store.Borders(t.Context())
	require.NoError(t, err)
	require.Len(t, borders, 2, "what is over is removed")
	settled, err := f.store.SettledBorders(t.Context())
	require.NoError(t, err)
	p, _ := f.store.Period(string(w.Period))
	start, end, _ := p.Rule.Borders(w.Name)
	require.Equal(t, SettledBorders{start: w.Start, end: w.End}, settled)
}

func TestAShadowHasTheBordersOfTheLiveBoards(t *testing.T) {
	f, w := zonedFixture(t)
	_, err := f.store.Settle(t.Context(), f.bordersOf(w), false)
	require.NoError(t, err)
	got, err := f.store.Shadow("x", time.Minute).Settle(t.Context(), f.bordersOf(w), true)
	require.NoError(t, err)
	require.Equal(t, []ledger.Settled{{At: w.Start, OK: true}, {At: w.End, OK: true}}, got)
}
