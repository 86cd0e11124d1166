package ingest

import (
	"context"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// batch is a fold on its way from the reader to the sweeper.
type batch struct {
	*fold.Batch
	counts.Tally
	records int64       // number of records read for the batch
	newest  int64       // latest record time, in ms
	oldest  int64       // earliest record time greater than 0, in ms; 0 if there is none
	trail   trail.Trail // at the batch's end
	again   bool        // the same range is read once more, for members that this batch lacks
	by      *rulebook.Book
	// beyond holds, by member, where refused members would leave the range of a field: see maxBeyond.
	beyond map[string]ledger.Beyond
	exact  bool // every shard is moved to the batch's end, since the next batch is read by other rules
}

// handoff passes batches from a partition's reader to its sweeper.
//
// The open batch lies in a slot of one. The reader takes it out, folds a response into it and puts it back. The
// sweeper takes it whenever it is idle, also while the reader waits for a broker. So a batch is swept as soon
// as the previous one is done, and grows until then.
//
// Order: the reader puts a batch into the slot, or closes it by handing it over, only after taking out the
// previous one, so the sweeper receives batches in order.
type handoff struct {
	slot   chan *batch
	closed chan *batch
	quiet  chan chan struct{}
	free   chan *batch
}

// batchesPerWorker is two: while one batch is swept, the other is in the slot or with the reader.
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

// open takes the batch out of the slot; it returns nil if the slot is empty.
func (h *handoff) open() *batch {
	select {
	case b := <-h.slot:
		return b
	default:
		return nil
	}
}

// put returns the open batch to the slot, which is empty, since only the reader fills it.
func (h *handoff) put(b *batch) { h.slot <- b }

// close hands over a batch that must not grow any more, once the sweeper is ready.
func (h *handoff) close(ctx context.Context, b *batch) error {
	select {
	case h.closed <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain waits until every batch that was handed over, or is in the slot, has been swept and recycled.
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

// recycle releases a batch's memory and makes the batch free for the reader.
func (h *handoff) recycle(b *batch) {
	b.Release()
	h.free <- b
}
