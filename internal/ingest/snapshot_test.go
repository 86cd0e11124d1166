package ingest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/retry"
)

// beatOf returns the last Beat of a partition's worker, from a snapshot.
func beatOf(t *testing.T, c *Consumer, partition int) time.Time {
	t.Helper()
	for _, p := range c.Snapshot().Partitions {
		if p.Partition == partition {
			return p.Beat
		}
	}
	t.Fatalf("no partition %d", partition)
	return time.Time{}
}

func TestAWorkerComesRoundAndOneThatHangsDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	hang, hanging := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.standings.apply = func(_ int, p *ledger.Piece) reply {
		if p.Partition.Number == 1 { // a call without a deadline
			once.Do(func() { close(hanging) })
			<-hang
		}
		return reply{}
	}
	c, stop := w.consumer(nil)
	eventually(t, "it has both", func() bool { return len(c.Snapshot().Partitions) == 2 })
	w.send(1, some("a", 1, 5)...)
	<-hanging
	since := time.Now()
	eventually(t, "the other comes round, idle", func() bool { return beatOf(t, c, 0).Sub(since) > 2*lookEvery })
	require.Less(t, beatOf(t, c, 1).Sub(since), lookEvery)
	close(hang)
	eventually(t, "it goes on", func() bool { return time.Since(beatOf(t, c, 1)) < lookEvery })
	require.NoError(t, stop())
	w.reaches(1)
}

func TestRetriesAreCountedByWhatTheyWentTo(t *testing.T) {
	t.Parallel()
	w, _ := quiet()
	ctx := t.Context()
	require.True(t, w.ended(ctx, health.StandingsError(0, errLost), retry.ForEver.Start(), 0))
	require.True(t, w.ended(ctx, health.StandingsError(0, errLost), retry.ForEver.Start(), 0))
	require.True(t, w.ended(ctx, errors.New("a connection to a broker is gone"), retry.ForEver.Start(), 0))
	require.Equal(t, int64(2), w.stats.Retries.Load())
	require.Equal(t, int64(1), w.stats.KafkaTries.Load())
	require.True(t, w.ended(ctx, locate.ErrAgain, retry.ForEver.Start(), 0))
	require.True(t, w.ended(ctx, &movedError{"events/0", ledger.At(5), ""}, retry.ForEver.Start(), 0))
	w.pipeline.carried.compare([]ledger.State{{}})
	require.Equal(t, int64(1), w.stats.Moves(counts.MoveEmptied))
	require.Equal(t, int64(3), w.stats.Retries.Load()+w.stats.KafkaTries.Load(), "neither is a retry")
	require.ErrorIs(t, health.StandingsError(0, errLost), errLost)
	require.NoError(t, health.StandingsError(0, nil))
	require.Equal(t, errLost.Error(), health.StandingsError(0, errLost).Error())
}

// An idle worker that loses the standings stops reading.
func TestAPartitionThatIsNotReadFallsBehindAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c, stop := w.consumer(nil)
	w.send(0, some("a", 3, 5)...)
	w.reaches(0)
	away := func(err error) func(int) error { return func(int) error { return err } }
	w.standings.do(func() { w.standings.position, w.standings.state = away(errLost), away(errLost) })
	eventually(t, "it has noticed", func() bool { return c.Snapshot().Partitions[0].Line.State == workers.StateWaiting })
	before := time.Now().Truncate(time.Millisecond)
	w.send(0, some("b", 7, 5)...)
	eventually(t, "it is behind", func() bool { return c.Snapshot().Partitions[0].Lag.Records == 7 })
	require.WithinRange(t, c.Snapshot().Partitions[0].Lag.Since, before, time.Now())
	w.standings.do(func() { w.standings.position, w.standings.state = nil, nil })
	w.reaches(0)
	eventually(t, "it isn't any more", func() bool { return c.Snapshot().Partitions[0].Lag == workers.Lag{Known: true} })
	require.NoError(t, stop())
}
