package ingest

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
	"github.com/standings/standings/internal/ledger"
)

type offsets = map[string]map[int]int64

// committing returns a commits that appends its calls to calls, unless fail returns an error.
func committing(fail func() error) (c *commits, calls *[]offsets, logs *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	calls = new([]offsets)
	c = newCommits(func(all map[string]map[int]kafkaconn.Commit) error {
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

func TestOffsetsAreCommittedTogetherAndTheLatestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls, _ := committing(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		go c.run(ctx, time.Second, &workers)
		c.at("a", 0, 5, trail.Trail{})
		c.at("a", 0, 9, trail.Trail{})
		c.at("a", 1, 3, trail.Trail{})
		c.at("b", 0, 1, trail.Trail{})
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []offsets{{"a": {0: 9, 1: 3}, "b": {0: 1}}}, *calls)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, *calls, 1, "nothing is committed twice")
		cancel()
		synctest.Wait()
	})
}

func TestTheLastCommitComesAfterTheLastWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls, _ := committing(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		workers.Add(1)
		done := make(chan struct{})
		go func() { c.run(ctx, time.Hour, &workers); close(done) }()
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, *calls)
		c.at("a", 0, 5, trail.Trail{})
		workers.Done()
		<-done
		require.Equal(t, []offsets{{"a": {0: 5}}}, *calls)
	})
}

func TestWhatCouldNotBeCommittedStaysPendingAndIsToldOnce(t *testing.T) {
	why := errLost
	c, calls, logs := committing(func() error { return why })
	c.at("a", 0, 5, trail.Trail{})
	c.at("a", 1, 5, trail.Trail{})
	c.flush()
	c.at("a", 1, 7, trail.Trail{})
	c.flush()
	c.flush()
	require.Len(t, logs.All(), 1)
	why = nil
	c.flush()
	require.Equal(t, []offsets{{"a": {0: 5, 1: 7}}}, *calls)
	why = errLost
	c.at("a", 0, 6, trail.Trail{})
	c.flush()
	require.Len(t, logs.All(), 2, "another time is another message")
}

func TestWhateverFailsTheLatestOfEachPartitionGetsThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failing := false
		c, calls, _ := committing(func() error {
			if failing {
				return errLost
			}
			return nil
		})
		want := map[int]int64{}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			failing = rapid.Bool().Draw(t, "fails")
			p := rapid.IntRange(0, 3).Draw(t, "partition")
			c.at("a", p, int64(i), trail.Trail{})
			want[p] = int64(i)
			if rapid.Bool().Draw(t, "flush") {
				c.flush()
			}
		}
		failing = false
		c.flush()
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
	c.at("a", 0, 8, trail.Trail{})
	c.at("a", 1, 3, trail.Trail{})
	require.NoError(t, c.now(t.Context(), map[int]progress{0: {offset: 9}}, "a"))
	c.flush()
	require.Equal(t, []offsets{{"a": {0: 9}}, {"a": {1: 3}}}, *calls)
}

func TestWhatIsBeingCommittedIsNotCommittedOverAStartEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		failing.Store(true)
		c, calls, _ := committing(func() error {
			if failing.Load() {
				time.Sleep(time.Second)
				return errLost
			}
			return nil
		})
		c.at("a", 0, 8, trail.Trail{})
		go c.flush()
		synctest.Wait()
		done := make(chan error)
		go func() { done <- c.now(t.Context(), map[int]progress{0: {offset: 9}}, "a") }()
		synctest.Wait()
		failing.Store(false)
		require.NoError(t, <-done)
		c.flush()
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
		go c.run(ctx, time.Second, new(sync.WaitGroup))
		c.at("a", 0, 5, trail.Trail{})
		c.at("a", 1, 7, trail.Trail{})
		require.NoError(t, c.now(t.Context(), map[int]progress{1: {offset: 9}, 2: {offset: 4}}, "a"))
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
	c.at("a", 0, 5, trail.Trail{})
	c.flush()
	require.NoError(t, c.now(t.Context(), map[int]progress{0: {offset: 0, plan: "plan"}}, "a"))
	*calls = nil
	c.again()
	c.flush()
	require.Empty(t, *calls, "what was counted before may be of a Redis that was lost")
	c.still("a", 0, 5, trail.Trail{}) // its worker has just found its ledger at 5
	c.flush()
	c.still("a", 0, 5, trail.Trail{})
	c.flush()
	require.Equal(t, []offsets{{"a": {0: 5}}}, *calls)
}

// In order: 5 is counted and committed; Redis rolls back to 0, which is now pending; Redis returns to 5 before
// 0 is committed.
func TestWhatIsPendingIsNotCommittedOverWhereTheLedgerStands(t *testing.T) {
	w := newWorld(t, 1)
	w.send(0, some("a", 5, 5)...)
	w.commit(map[int]int64{0: 5})
	w.standings.do(func() { w.standings.stands("events/0", "5") })
	require.Equal(t, int64(5), w.end(topic, 0))
	com, calls, _ := committing(nil)
	com.at(topic, 0, 0, trail.Trail{})
	worker := New(w.config).assigned(&Generation{Assignments: map[string][]int{topic: {0}}}, com)[0]
	at, err := worker.locator.locate(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.AllAt(5, of), at)
	com.flush()
	require.Equal(t, []offsets{{topic: {0: 5}}}, *calls)
}

// In order: nothing is committed, so this worker commits its start position at once; another worker, which
// found an empty Redis meanwhile, commits 0; the previous Redis returns, and no event follows.
func TestWhereAWorkerBeginsIsCommittedAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.send(0, some("a", 5, 5)...)
	w.standings.do(func() { w.standings.stands("events/0", "5") })
	require.Equal(t, int64(5), w.end(topic, 0))
	com, calls, _ := committing(nil)
	worker := New(w.config).assigned(&Generation{Assignments: map[string][]int{topic: {0}}}, com)[0]
	_, err := worker.locator.locate(t.Context())
	require.NoError(t, err)
	com.flush()
	*calls = nil
	com.again()
	com.flush()
	require.Equal(t, []offsets{{topic: {0: 5}}}, *calls)
}

func TestACommitThatHangsIsLeftAtTheEndOfTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		c := newCommits(func(map[string]map[int]kafkaconn.Commit) error { <-hung; return errors.New("closed") }, zap.NewNop())
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { time.Sleep(time.Second); cancel(errGenerationEnded) }()
		require.ErrorIs(t, c.now(ctx, map[int]progress{0: {offset: 1}}, "a"), errGenerationEnded)
		close(hung)
	})
}
