package ingest

import (
	"context"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// batch is a fold on its way from the reader to the sweeper.
type batch struct {
	*fold.Batch
	tally
	records int64       // that were read for it
	newest  int64       // latest record time, ms
	oldest  int64       // earliest record time that there is, ms; 0 without one
	trail   trail.Trail // as of its end
	again   bool        // the same is read once more, for members that it hasn't
	by      *rulebook
	// beyond is where refused members would leave the range of a field, by member: see maxBeyond.
	beyond map[string]ledger.Beyond
	exact  bool // every shard is brought to its end: others read on from there by other rules
}

// handoff passes batches from a partition's reader to its sweeper.
//
// The open batch lies in a slot of one. The reader takes it out, folds a
// response into it and puts it back; the sweeper takes it whenever it has
// nothing to do, also while the reader waits for a broker. So a batch is swept
// as soon as the one before is through, and until then it grows.
//
// Order: the reader puts a batch into the slot, or closes it by handing it over,
// only after taking out the one before, so the sweeper sees them in order.
type handoff struct {
	slot   chan *batch
	closed chan *batch
	quiet  chan chan struct{}
	free   chan *batch
}

// Two batches are enough: while one is swept the other is in the slot, or with
// the reader.
const batchesPerWorker = 2

func newHandoff(fresh func() *batch) *handoff {
	h := &handoff{
		slot:   make(chan *batch, 1),
		closed: make(chan *batch),
		quiet:  make(chan chan struct{}),
		free:   make(chan *batch, batchesPerWorker),
	}
	for range batchesPerWorker {
		h.free <- fresh()
	}
	return h
}

// open is the batch in the slot, or nil.
func (h *handoff) open() *batch {
	select {
	case b := <-h.slot:
		return b
	default:
		return nil
	}
}

// put gives the open batch back to the slot, which is empty: only the reader
// fills it.
func (h *handoff) put(b *batch) { h.slot <- b }

// close hands a batch over that mustn't grow any more, once the sweeper is ready.
func (h *handoff) close(ctx context.Context, b *batch) error {
	select {
	case h.closed <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain waits until everything handed over has been swept and released.
func (h *handoff) drain(ctx context.Context) error {
	swept := make(chan struct{})
	select {
	case h.quiet <- swept:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-swept:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recycle releases what a batch holds and makes it free for the reader.
func (h *handoff) recycle(b *batch) {
	b.Release()
	h.free <- b
}
