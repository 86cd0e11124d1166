package ingest

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
				s.applied(events, [ledger.Reasons]int64{ledger.Overflow: refused}, 3, time.Millisecond)
				inPieces, dead = inPieces+events, dead+refused
				addsUpIn(t, &s)
			}
			if rapid.Bool().Draw(t, "dropped") {
				records += inPieces
				continue
			}
			b := &batch{tally: tally{late: n("late"), early: n("early"), skipped: n("skipped"), repeated: n("repeated"), duplicates: n("duplicates")}}
			b.records = inPieces + b.late + b.early + b.skipped + b.repeated + b.duplicates
			for i, r := range event.Reasons() {
				b.dead[i] = n(string(r))
				b.records, dead = b.records+b.dead[i], dead+b.dead[i]
			}
			s.swept(&b.tally, b.records, inPieces, 0, time.Now())
			records += b.records
			addsUpIn(t, &s)
		}
		require.Equal(t, records, s.Consumed())
		require.Equal(t, dead, s.DeadLettered())
	})
	require.Len(t, event.Reasons(), reasons)
	require.Panics(t, func() { reasonIndex("another") })
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
	s.applied(5, [ledger.Reasons]int64{}, 5, time.Millisecond)
	s.swept(&tally{late: 1}, 7, 5, 0, time.Now())
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

func TestTheCauseOfAMoveIsToldByTheLedger(t *testing.T) {
	for _, m := range []struct{ from, to, want string }{
		{"120", "480", MoveAdvanced},
		{"120", "120..480@8000000000000000", MoveAdvanced},
		{"120..480@8000000000000000", "120..480@9000000000000000", MoveAdvanced},
		{"120..480@8000000000000000", "480", MoveAdvanced},
		{"480", "120", MoveRolledBack},
		{"480", "120..480@8000000000000000", MoveRolledBack},
		{"120..480@8000000000000000", "120..480@7000000000000000", MoveRolledBack},
		{"120..480@8000000000000000", "120", MoveRolledBack},
		{"480", "", MoveEmptied},
		{"480", "torn:480", MoveTorn},
		{"480", "soup", MoveUnreadable},
	} {
		e := &movedError{field: "events/0", from: position(t, m.from), to: m.to}
		require.Equal(t, m.want, e.cause(), "from %s to %q", m.from, m.to)
		require.ErrorIs(t, e, errMoved)
		var s Stats
		require.Equal(t, m.want, s.moved(e, false))
		require.Equal(t, int64(1), s.Moves(m.want))
		require.Equal(t, int64(1), s.AllMoves())
		want := m.want
		if want == MoveRolledBack {
			want = MoveRebuilt
		}
		require.Equal(t, want, s.moved(e, true), "the boards are refilled since a rebuild")
	}
	require.Panics(t, func() { new(Stats).Moves("another") })
}

func position(t *testing.T, text string) ledger.Position {
	t.Helper()
	p, err := ledger.Parse(text)
	require.NoError(t, err)
	return p
}
