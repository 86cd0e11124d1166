package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

func TestAWaitForMemoryThatLastsIsAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 2, nil)
		hog := b.consumer.Budget.Account()
		require.True(t, hog.Take(b.consumer.Budget.Total()))
		stop := b.run()
		defer stop()
		b.send(0, some("a", 100, 5)...)
		w := b.workers[0]
		time.Sleep(29 * time.Second)
		synctest.Wait()
		require.Equal(t, workers.StateRunning, w.status.Line().State, "a turn is waited for now and then")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		l, since, _ := w.status.Shown()
		require.Equal(t, workers.StateWaiting, l.State)
		require.Equal(t, health.WaitsMemory, l.Reason)
		require.Contains(t, l.What, "28085452 of 28085452 bytes are in use")
		require.Contains(t, l.Remedy, "fold_memory")
		require.WithinDuration(t, time.Now(), since, 10*time.Second)
		require.Equal(t, 1, b.consumer.Snapshot().Memory.Waiting)
		require.Equal(t, workers.StateRunning, b.workers[1].status.Line().State, "it is idle, and needs none")
		hog.Release(b.consumer.Budget.Total())
		b.counts(time.Minute)
		require.Equal(t, workers.StateRunning, w.status.Line().State)
	})
}
