package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLagIsTheAgeOfWhatDoesNotCountYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := noLag()
		ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }
		behind := func(records int64, age time.Duration) {
			t.Helper()
			g := l.get()
			require.True(t, g.Known)
			require.Equal(t, records, g.Records)
			if age < 0 {
				require.Zero(t, g.Since)
				return
			}
			require.Equal(t, age, time.Since(g.Since).Round(time.Millisecond))
		}
		require.False(t, l.get().Known, "nothing was looked at")
		l.ends(80)
		require.False(t, l.get().Known, "nobody knows from where")

		l.located(100, 400)
		behind(300, 0) // how old they are nobody has seen
		time.Sleep(time.Minute)
		behind(300, time.Minute)
		l.sweeping(ago(time.Hour))
		behind(300, time.Hour)
		l.ends(500)
		behind(400, time.Hour)
		l.sweeping(0) // records without a time: nothing better is known
		behind(400, time.Hour)
		l.counts(450, ago(time.Second))
		behind(50, time.Second)
		l.sweeping(ago(time.Second))
		l.counts(500, ago(0))
		behind(0, -1)

		time.Sleep(24 * time.Hour) // nobody sends anything
		behind(0, -1)
		l.ends(510)
		behind(10, 0) // and not a day
		l.located(200, 510)
		behind(310, 0) // rolled back
		l.goesOn(600)  // past the log's end, as an open transaction shows it
		behind(0, -1)
	})
}
