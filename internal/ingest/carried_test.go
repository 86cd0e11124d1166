package ingest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ledger"
)

func TestTheCauseOfAMoveIsToldByTheLedger(t *testing.T) {
	for _, m := range []struct{ from, to, want string }{
		{"120", "480", counts.MoveAdvanced},
		{"120", "120..480@8000000000000000", counts.MoveAdvanced},
		{"120..480@8000000000000000", "120..480@9000000000000000", counts.MoveAdvanced},
		{"120..480@8000000000000000", "480", counts.MoveAdvanced},
		{"480", "120", counts.MoveRolledBack},
		{"480", "120..480@8000000000000000", counts.MoveRolledBack},
		{"120..480@8000000000000000", "120..480@7000000000000000", counts.MoveRolledBack},
		{"120..480@8000000000000000", "120", counts.MoveRolledBack},
		{"480", "", counts.MoveEmptied},
		{"480", "torn:480", counts.MoveTorn},
		{"480", "soup", counts.MoveUnreadable},
	} {
		e := &movedError{field: "events/0", from: position(t, m.from), to: m.to}
		require.Equal(t, m.want, e.cause(), "from %s to %q", m.from, m.to)
		require.ErrorIs(t, e, errMoved)
		require.Equal(t, m.want, causeOf(e, false))
		want := m.want
		if want == counts.MoveRolledBack {
			want = counts.MoveRebuilt
		}
		require.Equal(t, want, causeOf(e, true), "the boards are refilled since a rebuild")
	}
}

func position(t *testing.T, text string) ledger.Position {
	t.Helper()
	p, err := ledger.Parse(text)
	require.NoError(t, err)
	return p
}

// Another log or an operator may have moved the ledger.
func TestAMoveVoidsWhatIsKnownOfTheLedgerAndOfDeadLetters(t *testing.T) {
	t.Parallel()
	w, _ := quiet()
	c := w.pipeline.carried
	c.stood = ledger.AllAt(15, 1)
	c.written.Begin(10)
	c.writtenRefused.Begin(10)
	known := c.written
	at := func(text string) []ledger.State { return []ledger.State{{Ledger: map[string]string{c.Field: text}}} }
	c.compare(at("15"))
	require.Equal(t, known, c.written, "it is where it was")
	c.compare(at(""))
	require.Nil(t, c.stood)
	require.Equal(t, [2]deadletter.Written{}, [2]deadletter.Written{c.written, c.writtenRefused})
}

func TestAMoveIsReportedOnceAlsoIfNoFlowFollows(t *testing.T) {
	t.Parallel()
	w, _ := quiet()
	w.pipeline.known = new(lookBack)
	c := w.pipeline.carried
	ctx, end := context.WithCancel(t.Context())
	c.moved(&movedError{c.Field, ledger.At(5), "3"})
	require.Zero(t, c.stats.AllMoves(), "the cause isn't known yet")
	end()
	w.run(ctx)
	c.reportMove(false)
	require.Equal(t, int64(1), c.stats.AllMoves())
	require.Equal(t, int64(1), c.stats.Moves(counts.MoveRolledBack))
}
