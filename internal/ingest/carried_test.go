package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ledger"
)

// What moved the ledger may be another log, or an operator.
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
