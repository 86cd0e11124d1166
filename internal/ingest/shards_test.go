package ingest

import (
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

// reset starts a batch of a partition of one shard at a position.
func reset(b *fold.Batch, at ledger.Position) {
	all := ledger.Positions{at}
	b.Reset(at.From, all.Next(), all, all)
}
