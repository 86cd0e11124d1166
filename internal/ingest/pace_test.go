package ingest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAPieceIsAlwaysOf32To4000MemberWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pace{target: time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "target"))}
		for range rapid.IntRange(0, 30).Draw(t, "calls") {
			p.observe(rapid.IntRange(0, 10_000).Draw(t, "width"), time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took")))
			w := p.width()
			require.GreaterOrEqual(t, w, minWidth)
			require.LessOrEqual(t, w, maxWidth)
		}
	})
}

// settles runs calls of the requested width, rounded down to whole members of a number of windows, on a Redis
// that takes each per member-window and call per call. It returns the duration of the last call.
func settles(p *pace, calls, windows int, each, call time.Duration) (last time.Duration) {
	for range calls {
		w := max(p.width()/windows, 1) * windows
		last = call + time.Duration(w)*each
		p.observe(w, last)
	}
	return last
}

func TestCallsComeToTakeAboutTheTimeTheyShould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pace{target: 5 * time.Millisecond}
		each := time.Duration(rapid.Int64Range(2_000, 100_000).Draw(t, "ns"))
		took := settles(&p, 60, rapid.IntRange(1, 12).Draw(t, "windows"), each, 0)
		require.InDelta(t, 5.0, took.Seconds()*1000, 1.8)
	})
}

func TestPiecesThatASlowSpellHasCutSmallGrowAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.IntRange(1, 50).Draw(t, "windows") // per member; whole members of 30 never reach 32
		p := pace{target: 5 * time.Millisecond}
		settles(&p, 50, windows, 10*time.Millisecond, 0)
		require.Equal(t, minWidth, p.width())
		settles(&p, 80, windows, 2*time.Microsecond, 100*time.Microsecond)
		require.Greater(t, p.width(), 1000)
	})
}

func TestOnePauseOfTheMachineCutsPiecesNoMoreThanByHalf(t *testing.T) {
	p := pace{target: 5 * time.Millisecond}
	settles(&p, 50, 3, 10*time.Microsecond, 0)
	before := p.width()
	p.observe(before, 10*time.Second)
	require.Greater(t, p.width(), before/2)
}

func TestACallThatOnlyMovesThePositionSaysNothing(t *testing.T) {
	p := pace{target: 5 * time.Millisecond}
	p.observe(0, time.Second)
	p.observe(3, time.Second)
	require.Equal(t, 500, p.width())
}
