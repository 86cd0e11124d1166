package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

// reset starts a batch of a partition with one shard at a position.
func reset(b *fold.Batch, at ledger.Position) {
	all := ledger.Positions{at}
	b.Reset(at.From, all.Next(), all, all)
}

// The next owner has nothing to read again.
func TestAShardThatNothingCameForIsBroughtAlongAtTheEndOfAGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, nil)
		stop := b.run()
		time.Sleep(lookEvery / 4) // between two comparisons
		b.send(0, some("a", 1, 5)...)
		b.counts(lookEvery / 2)
		if of > 1 {
			require.NotEqual(t, "1", b.standings.at(0), "the others lag")
		}
		stop()
		require.Equal(t, "1", b.standings.at(0))
	})
}
