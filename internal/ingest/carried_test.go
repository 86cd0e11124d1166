package ingest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ledger"
)

// Another log or an operator may have moved the ledger.
func TestAMoveVoidsWhatIsKnownOfTheLedgerAndOfDeadLetters(t *testing.T) {
	t.Parallel()
	w, _ := quiet()
	c := w.pipeline.carried
	c.stood = ledger.AllAt(15, 1)
	c.written.Begin(10)
	c.writtenRefused.Begin(10)
	known := c.written
	at := func(text string) []ledger.State { return []ledger.State{{Ledger: map[string]string{c.field: text}}} }
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
	c.moved(&movedError{c.field, ledger.At(5), "3"})
	require.Zero(t, c.stats.AllMoves(), "the cause isn't known yet")
	end()
	w.run(ctx)
	c.reportMove(false)
	require.Equal(t, int64(1), c.stats.AllMoves())
	require.Equal(t, int64(1), c.stats.Moves(MoveRolledBack))
}
