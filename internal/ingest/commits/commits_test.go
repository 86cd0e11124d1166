package commits

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
)

var (
	errAway  = errors.New("away")
	errEnded = errors.New("ended")
)

type offsets = map[string]map[int]int64

// committing returns a commits that appends its calls to calls, unless fail returns an error.
func committing(fail func() error) (c *Pending, calls *[]offsets, logs *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	calls = new([]offsets)
	c = New(func(all map[string]map[int]kafkaconn.Commit) error {
		if fail != nil {
			if err := fail(); err != nil {
				return err
			}
		}
		kept := offsets{}
		for topic, o := range all {
			kept[topic] = map[int]int64{}
			for p, c := range o {
				kept[topic][p] = c.Offset
			}
		}
		*calls = append(*calls, kept)
		return nil
	}, zap.New(core))
	return c, calls, logs
}

func TestWhatCouldNotBeCommittedStaysPendingAndIsToldOnce(t *testing.T) {
	why := errAway
	c, calls, logs := committing(func() error { return why })
	c.At("a", 0, 5, trail.Trail{})
	c.At("a", 1, 5, trail.Trail{})
	c.Flush()
	c.At("a", 1, 7, trail.Trail{})
	c.Flush()
	c.Flush()
	require.Len(t, logs.All(), 1)
	why = nil
	c.Flush()
	require.Equal(t, []offsets{{"a": {0: 5, 1: 7}}}, *calls)
	why = errAway
	c.At("a", 0, 6, trail.Trail{})
	c.Flush()
	require.Len(t, logs.All(), 2, "another time is another message")
}

func TestWhateverFailsTheLatestOfEachPartitionGetsThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failing := false
		c, calls, _ := committing(func() error {
			if failing {
				return errAway
			}
			return nil
		})
		want := map[int]int64{}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			failing = rapid.Bool().Draw(t, "fails")
			p := rapid.IntRange(0, 3).Draw(t, "partition")
			c.At("a", p, int64(i), trail.Trail{})
			want[p] = int64(i)
			if rapid.Bool().Draw(t, "flush") {
				c.Flush()
			}
		}
		failing = false
		c.Flush()
		got := map[int]int64{}
		for _, all := range *calls {
			maps.Copy(got, all["a"])
		}
		require.Equal(t, want, got)
	})
}

// In order: a batch ends at 8, and that offset is pending; events are deleted from the log; the partition
// starts again at 9, which is committed at once; the pending offsets are committed.
func TestWhatWasPendingIsNotCommittedOverAStart(t *testing.T) {
	c, calls, _ := committing(nil)
	c.At("a", 0, 8, trail.Trail{})
	c.At("a", 1, 3, trail.Trail{})
	require.NoError(t, c.Now(t.Context(), map[int]Progress{0: {Offset: 9}}, "a"))
	c.Flush()
	require.Equal(t, []offsets{{"a": {0: 9}}, {"a": {1: 3}}}, *calls)
}

func TestWhatIsBeingCommittedIsNotCommittedOverAStartEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		failing.Store(true)
		c, calls, _ := committing(func() error {
			if failing.Load() {
				time.Sleep(time.Second)
				return errAway
			}
			return nil
		})
		c.At("a", 0, 8, trail.Trail{})
		go c.Flush()
		synctest.Wait()
		done := make(chan error)
		go func() { done <- c.Now(t.Context(), map[int]Progress{0: {Offset: 9}}, "a") }()
		synctest.Wait()
		failing.Store(false)
		require.NoError(t, <-done)
		c.Flush()
		require.Equal(t, []offsets{{"a": {0: 9}}}, *calls)
	})
}

// In order: another worker sets where all partitions start; this worker counts and commits 5; the other
// worker's commit of 0 arrives late, and no event follows.
func TestWhatWasCommittedIsCommittedAgainNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls, _ := committing(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go c.Run(ctx, time.Second, new(sync.WaitGroup))
		c.At("a", 0, 5, trail.Trail{})
		c.At("a", 1, 7, trail.Trail{})
		require.NoError(t, c.Now(t.Context(), map[int]Progress{1: {Offset: 9}, 2: {Offset: 4}}, "a"))
		time.Sleep(2*againEvery + againEvery/2)
		synctest.Wait()
		ours := offsets{"a": {0: 5, 1: 9}} // 2 belongs to another worker
		require.Equal(t, []offsets{{"a": {1: 9, 2: 4}}, {"a": {0: 5}}, ours, ours}, *calls)
	})
}

// In order: a partition counts and commits 5; an earlier start of this process commits its plan, 0, for all
// partitions; it finds that another process has started the topic.
func TestAPlanIsNotWhatStaysCommittedForAPartitionThatIsIdle(t *testing.T) {
	c, calls, _ := committing(nil)
	c.At("a", 0, 5, trail.Trail{})
	c.Flush()
	require.NoError(t, c.Now(t.Context(), map[int]Progress{0: {Offset: 0, Plan: "plan"}}, "a"))
	*calls = nil
	c.again()
	c.Flush()
	require.Empty(t, *calls, "what was counted before may be of a Redis that was lost")
	c.Still("a", 0, 5, trail.Trail{}) // its worker has just found its ledger at 5
	c.Flush()
	c.Still("a", 0, 5, trail.Trail{})
	c.Flush()
	require.Equal(t, []offsets{{"a": {0: 5}}}, *calls)
}

func TestACommitThatHangsIsLeftAtTheEndOfTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		c := New(func(map[string]map[int]kafkaconn.Commit) error { <-hung; return errors.New("closed") }, zap.NewNop())
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { time.Sleep(time.Second); cancel(errEnded) }()
		require.ErrorIs(t, c.Now(ctx, map[int]Progress{0: {Offset: 1}}, "a"), errEnded)
		close(hung)
	})
}
