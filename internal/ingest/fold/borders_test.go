package fold

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// An event of a calendar window is folded only once the window's borders are settled, and by the settled
// borders.
func TestAnEventIsFoldedByItsWindowsSettledBorders(t *testing.T) {
	edmonton, err := periods.NewCalendar("America/Edmonton", "monday")
	require.NoError(t, err)
	own := BuiltIn(edmonton, 0, periods.Monthly)
	own.Periods = append(own.Periods, BuiltIn(periods.Calendar{}, 0, periods.Yearly).Periods...)
	settled := new(Borders)
	bound := own.By(settled)
	batch := New(&bound, &unbounded{}, 1<<20)
	start := ledger.Positions{ledger.At(0)}
	batch.Reset(0, start.Next(), start, start)

	at := func(text string) int64 {
		ms, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return ms.UnixMilli()
	}
	offset := int64(0)
	add := func(time, recordTime string) (Result, error) {
		offset++
		user := []byte("u1")
		return batch.Add(&Event{Offset: offset, User: user, Hash: Hash(user), Boards: [][]byte{[]byte("global")}, Points: 1, Time: at(time), RecordTime: at(recordTime)})
	}
	settle := func(err error) (asked []string) {
		var unsettled *UnsettledError
		require.ErrorAs(t, err, &unsettled)
		all := map[periods.Border]int64{}
		for _, u := range unsettled.Borders {
			asked = append(asked, u.Border.String())
			all[u.Border] = u.At
			if u.Border.Date == "2026-12-01" {
				all[u.Border] = at("2026-12-01T07:00:00Z") // an hour later than by today's time zone rules
			}
		}
		settled.Settle(all)
		return asked
	}

	_, err = add("2026-12-01T06:30:00Z", "2026-12-01T06:30:00Z")
	require.Equal(t, []string{"monthly America/Edmonton 2026-12-01", "monthly America/Edmonton 2027-01-01"}, settle(err))
	_, err = add("2026-12-01T06:30:00Z", "2026-12-01T06:30:00Z")
	require.Equal(t, []string{"monthly America/Edmonton 2026-11-01"}, settle(err), "it is in November by the settled border")
	for _, event := range []string{"2026-12-01T06:30:00Z", "2026-12-01T07:00:00Z"} {
		result, err := add(event, event)
		require.NoError(t, err)
		require.Equal(t, Added, result)
	}
	// The event is late by any border, so nothing needs to be settled.
	result, err := add("2026-05-01T12:00:00Z", "2027-05-01T12:00:00Z")
	require.NoError(t, err)
	require.Equal(t, Late, result)

	batch.MoveTo(offset + 1)
	var pieces Pieces
	pieces.Reset(batch, ledger.Partition{Topic: "points"}, 0, ledger.At(0))
	piece, _, ok := pieces.Next(1000)
	require.True(t, ok)
	got := map[string][2]int64{}
	for _, w := range piece.Windows {
		got[w.Name] = [2]int64{w.Start, w.End}
	}
	require.Equal(t, map[string][2]int64{
		"2026":    {at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")},
		"2026-11": {at("2026-11-01T06:00:00Z"), at("2026-12-01T07:00:00Z")},
		"2026-12": {at("2026-12-01T07:00:00Z"), at("2027-01-01T06:00:00Z")},
	}, got)

	settled.Forget()
	batch.Reset(0, start.Next(), start, start)
	_, err = add("2026-12-01T06:30:00Z", "2026-12-01T06:30:00Z")
	require.Len(t, settle(err), 2)
}
