package retry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// logged returns the times, in seconds, at which a line is logged that is due every second.
func logged(l *LogLimit, seconds int) (at []int) {
	began := time.Now()
	for range seconds {
		if l.Due(5 * time.Second) {
			at = append(at, int(time.Since(began)/time.Second))
		}
		time.Sleep(time.Second)
	}
	return at
}

func TestALineIsLoggedAtOnceAndThenOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l LogLimit
		require.Equal(t, []int{0, 5, 10}, logged(&l, 12))
		require.Equal(t, []int{3, 8}, logged(&l, 10), "what comes later goes on from the last one")
		time.Sleep(time.Hour)
		require.Equal(t, []int{0, 5}, logged(&l, 8))
	})
}

func TestADelayedLineIsLoggedAfterAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l LogLimit
		l.Delay()
		require.Equal(t, []int{5, 10}, logged(&l, 12))
		l.Delay() // between two lines it changes nothing
		require.Equal(t, []int{3, 8}, logged(&l, 10))
	})
}

func TestAfterAResetTheNextLineIsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l LogLimit
		require.Equal(t, []int{0}, logged(&l, 2))
		l.Reset()
		require.Equal(t, []int{0}, logged(&l, 2))
		l.Reset()
		l.Delay()
		require.Equal(t, []int{5}, logged(&l, 6))
	})
}
