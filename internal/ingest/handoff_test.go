package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

type endless struct{}

func (endless) Take(int64) bool { return true }
func (endless) Release(int64)   {}

func batches() *handoff {
	return newHandoff(func() *batch { return &batch{Batch: fold.New(new(fold.Rules), endless{}, 1<<20)} })
}

// sweepAll sweeps batches as the sweeper does, until ctx ends.
func sweepAll(ctx context.Context, h *handoff, each func(*batch)) {
	sweep := func(b *batch) { each(b); h.recycle(b) }
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-h.slot:
			sweep(b)
		case b := <-h.closed:
			sweep(b)
		case swept := <-h.quiet:
			if b := h.open(); b != nil {
				sweep(b)
			}
			close(swept)
		}
	}
}

// A reader puts, grows, closes and drains batches in any order, and a sweeper has any speed. Batches are swept
// in order and without gaps, and after a drain all of them are swept.
func TestBatchesAreSweptInOrderAndNoneIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"put", "put", "put", "close", "drain", "wait"}), 1, 60).Draw(rt, "steps")
		delays := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 10).Draw(rt, "delays")
		synctest.Test(t, func(t *testing.T) {
			h := batches()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			swept, n := int64(0), 0
			go sweepAll(ctx, h, func(b *batch) {
				assert.Equal(rt, swept, b.From())
				assert.Greater(rt, b.To(), b.From())
				time.Sleep(time.Duration(delays[n%len(delays)]) * time.Millisecond)
				swept, n = b.To(), n+1
			})
			read := int64(0)
			next := func() *batch {
				b := h.open()
				if b == nil {
					b = <-h.free
					reset(b.Batch, ledger.At(read))
				}
				read++
				b.MoveTo(read)
				return b
			}
			for _, s := range steps {
				switch s {
				case "put":
					h.put(next())
				case "close":
					require.NoError(rt, h.close(ctx, next()))
				case "drain":
					require.NoError(rt, h.drain(ctx))
					require.Equal(rt, read, swept)
					require.Len(rt, h.free, batchesPerWorker)
				case "wait":
					time.Sleep(2 * time.Millisecond)
				}
			}
			require.NoError(rt, h.drain(ctx))
			require.Equal(rt, read, swept)
			cancel()
			synctest.Wait()
		})
	})
}

func TestWhileOneBatchIsSweptTheNextGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := batches()
		ctx, cancel := context.WithCancel(t.Context())
		var got []int64
		go sweepAll(ctx, h, func(b *batch) {
			time.Sleep(time.Second)
			got = append(got, b.To())
		})
		for i := range int64(10) {
			b := h.open()
			if b == nil {
				b = <-h.free
				reset(b.Batch, ledger.At(i))
			}
			b.MoveTo(i + 1)
			h.put(b)
			synctest.Wait()
		}
		require.NoError(t, h.drain(ctx))
		require.Equal(t, []int64{1, 10}, got)
		cancel()
		synctest.Wait()
	})
}

func TestNobodyWaitsForASweeperThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := batches()
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		go func() { time.Sleep(time.Second); cancel(why) }()
		require.ErrorIs(t, h.drain(ctx), why)
		require.ErrorIs(t, h.close(ctx, <-h.free), why)
	})
}
