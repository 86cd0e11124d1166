package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ledger"
)

func TestThePieceThatBeginsASweepBringsTheTextOfItsRulesThoughTheyWereNoted(t *testing.T) {
	t.Parallel()
	by := rulebook.New(ledger.Note{Rules: 7, Text: "rules"}, rulebook.Counting{})
	sweep := ledger.Position{From: 1, To: 9, Hash: 5, Rules: 7}
	for name, c := range map[string]struct {
		noted          ledger.Fingerprint
		expected, next ledger.Position
		brings         bool
	}{
		"a sweep begins":               {7, ledger.At(1), sweep, true},
		"it goes on":                   {7, sweep, ledger.At(9), false},
		"a batch of one piece":         {7, ledger.At(1), ledger.At(9), false},
		"one by rules that aren't yet": {3, ledger.At(1), ledger.At(9), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lane{notes: true, noted: c.noted}
			require.Equal(t, c.brings, l.note(by, &ledger.Piece{Expected: c.expected, Next: c.next}) != nil)
		})
	}
}
