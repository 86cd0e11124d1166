package health

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger/workers"
)

func TestLagIsTheAgeOfWhatDoesNotCountYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLagTracker()
		ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }
		behind := func(records int64, age time.Duration) {
			t.Helper()
			g := l.Lag()
			require.True(t, g.Known)
			require.Equal(t, records, g.Records)
			if age < 0 {
				require.Zero(t, g.Since)
				return
			}
			require.Equal(t, age, time.Since(g.Since).Round(time.Millisecond))
		}
		require.False(t, l.Lag().Known, "nothing was looked at")
		l.Ends(80, 80)
		require.False(t, l.Lag().Known, "nobody knows from where")

		l.Located(100, 400)
		behind(300, 0) // none of them was read
		require.True(t, l.Lag().Unread)
		time.Sleep(time.Minute)
		behind(300, time.Minute)
		l.Sweeping(ago(time.Hour))
		behind(300, time.Hour)
		require.False(t, l.Lag().Unread)
		l.Ends(500, 500)
		behind(400, time.Hour)
		l.Sweeping(0) // records without a time: nothing better is known
		behind(400, time.Hour)
		l.Counts(450, ago(time.Second))
		behind(50, time.Second)
		l.Sweeping(ago(time.Second))
		l.Counts(500, ago(0))
		behind(0, -1)

		time.Sleep(24 * time.Hour) // no producer sends anything
		behind(0, -1)
		l.Ends(510, 510)
		behind(10, 0) // not a day
		l.Located(200, 510)
		behind(310, 0) // rolled back
		l.GoesOn(600)  // past the log's end, as an open transaction makes it appear
		behind(0, -1)
	})
}

func TestWhatAnOpenTransactionHoldsBackIsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLagTracker()
		l.Located(100, 100)
		l.Ends(100, 140)
		began := time.Now().UTC()
		open := &workers.OpenTransaction{Offset: 100, Since: began}
		require.Equal(t, workers.Lag{Known: true, Records: 40, Since: began, Open: open}, l.Lag())
		time.Sleep(time.Minute)
		l.Ends(100, 160)
		l.Ends(100, -1) // only the stable end was requested
		require.Equal(t, workers.Lag{Known: true, Records: 60, Since: began, Open: open}, l.Lag())

		l.Ends(150, 170) // the transaction has ended, and another is open
		later := time.Now().UTC()
		l.Counts(150, later.UnixMilli())
		require.Equal(t, &workers.OpenTransaction{Offset: 150, Since: later}, l.Lag().Open)
		require.Equal(t, int64(20), l.Lag().Records)
		l.Ends(170, 170)
		l.Counts(170, later.UnixMilli())
		require.Equal(t, workers.Lag{Known: true}, l.Lag())
	})
}

func TestTheEndOfARefillIsReportedOnce(t *testing.T) {
	l := NewLagTracker()
	l.Located(100, 500)
	require.False(t, l.Counts(200, 0), "nothing was lost")
	l.Refills(400)
	require.False(t, l.Counts(399, 0))
	require.Equal(t, int64(1), l.Refilling())
	require.True(t, l.Counts(450, 0))
	require.Zero(t, l.Refilling())
	require.False(t, l.Counts(500, 0))
}
