package counts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
)

func TestWhatBecameOfEventsAddsUpToThoseThatWereRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Stats
		n := func(name string) int64 { return rapid.Int64Range(0, 1000).Draw(t, name) }
		records, dead := int64(0), int64(0)
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			inPieces := int64(0)
			for range rapid.IntRange(1, 4).Draw(t, "pieces") {
				events := n("events")
				refused := rapid.Int64Range(0, events).Draw(t, "refused")
				s.CountPiece(events, [ledger.Reasons]int64{ledger.Overflow: refused}, 3, time.Millisecond)
				inPieces, dead = inPieces+events, dead+refused
				addsUpIn(t, &s)
			}
			if rapid.Bool().Draw(t, "dropped") {
				records += inPieces
				continue
			}
			b := Tally{Late: n("late"), Early: n("early"), Skipped: n("skipped"), Repeated: n("repeated"), Duplicates: n("duplicates")}
			read := inPieces + b.Late + b.Early + b.Skipped + b.Repeated + b.Duplicates
			for i, r := range event.Reasons() {
				b.Dead[i] = n(string(r))
				read, dead = read+b.Dead[i], dead+b.Dead[i]
			}
			s.CountBatch(&b, read, inPieces, 0, time.Now())
			records += read
			addsUpIn(t, &s)
		}
		require.Equal(t, records, s.Consumed())
		require.Equal(t, dead, s.DeadLettered())
	})
	require.Len(t, event.Reasons(), reasons)
	require.Panics(t, func() { ReasonIndex("another") })
}

func addsUpIn(t *rapid.T, s *Stats) {
	c := s.Count()
	sum := c.Applied + c.Late + c.Early + c.Skipped + c.Repeated + c.Duplicates
	for _, n := range c.Dead {
		sum += n
	}
	require.Equal(t, c.Consumed, sum)
}

func TestAnEventThatIsLostOnTheWayShows(t *testing.T) {
	var s Stats
	s.CountPiece(5, [ledger.Reasons]int64{}, 5, time.Millisecond)
	s.CountBatch(&Tally{Late: 1}, 7, 5, 0, time.Now())
	c := s.Count()
	require.Equal(t, int64(7), c.Consumed)
	require.Equal(t, int64(6), c.Applied+c.Late, "one of seven has no result")
}

func TestAHistogramCountsUpToItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := eventBounds
		values := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(bounds), rapid.Int64Range(0, 2*bounds[len(bounds)-1]))).Draw(t, "values")
		var h histogram
		sum := int64(0)
		for _, v := range values {
			h.observe(bounds, v)
			sum += v
		}
		d := h.read(bounds)
		require.Equal(t, int64(len(values)), d.Count)
		require.Equal(t, sum, d.Sum)
		for i, bound := range bounds {
			below := int64(0)
			for _, v := range values {
				if v <= bound {
					below++
				}
			}
			require.Equal(t, below, d.Counts[i], "up to %d", bound)
		}
	})
	for _, bounds := range [][]int64{eventBounds, updateBounds, applyBounds, standingBounds} {
		require.IsIncreasing(t, bounds)
		require.Less(t, len(bounds), len(histogram{}.counts))
	}
}
