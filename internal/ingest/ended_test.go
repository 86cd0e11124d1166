package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// quiet returns a worker without a broker.
func quiet() (*worker, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	p, stats := &source.Handle{Partition: ledger.Partition{Topic: topic}, Field: "events/0", Log: zap.New(core)}, new(counts.Stats)
	l := &health.LagTracker{}
	s := health.NewStatus(p.Log, "me", "", l)
	w := &worker{Handle: p, shards: newFake().standings(), stats: stats, status: s, lag: l}
	w.pipeline = &pipeline{common: common{stats: stats}, lasting: lasting{carried: &carried{Handle: p, stats: stats}}, Handle: p, status: s, lag: l, fetch: source.Settings{Wait: 500 * time.Millisecond}}
	return w, logs
}

func TestALookAtAHaltThatTakesLongIsNotTakenAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := quiet()
		pause := func(took time.Duration) time.Duration {
			began := time.Now()
			require.True(t, w.ended(t.Context(), &health.Halt{Reason: health.HaltBoard, What: "gone", Remedy: "rebuild"}, retry.ForEver.Start(), took))
			return time.Since(began)
		}
		require.Equal(t, time.Second, pause(time.Hour), "it worked for an hour, and halted")
		require.Equal(t, time.Second, pause(20*time.Millisecond))
		require.Equal(t, 4*time.Second, pause(4*time.Second), "a sweep is read again")
		require.Equal(t, 10*time.Second, pause(time.Minute))
	})
}
