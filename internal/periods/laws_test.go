package periods_test

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/periods"
)

// drawn draws a calendar, a period and an instant, often with unusual clocks and near borders.
func drawn(t *rapid.T) (c periods.Calendar, p periods.Period, ms int64) {
	zone := rapid.SampledFrom(odd).Draw(t, "zone")
	day := rapid.SampledFrom([]string{"monday", "saturday", "sunday", "friday"}).Draw(t, "week start")
	c, err := periods.NewCalendar(zone, day)
	require.NoError(t, err)
	p = rapid.SampledFrom(periods.All()).Draw(t, "period")
	ms = rapid.Int64Range(0, periods.MaxTime-1).Draw(t, "ms")
	if rapid.Bool().Draw(t, "near a border") {
		w, err := c.At(periods.Daily, ms)
		require.NoError(t, err)
		near := w.End + rapid.Int64Range(-2, 2).Draw(t, "off")
		ms = max(0, min(near, periods.MaxTime-1))
	}
	return c, p, ms
}

func at(t *rapid.T, c periods.Calendar, p periods.Period, ms int64) periods.Window {
	w, err := c.At(p, ms)
	require.NoError(t, err)
	return w
}
