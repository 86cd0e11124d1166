package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger/workers"
)

// Sixty partitions wait for their turn at memory, and their brokers have no more records for them. Another
// partition queues after them, and its broker has records. A worker that has taken over a sweep and has folded
// nothing of it yet doesn't hold its turn either.
func TestATurnAtMemoryIsNotHeldThroughAWaitForABroker(t *testing.T) {
	const outage = 5 * time.Minute
	n := fewer(60)
	for name, begin := range map[string]func(b *bubble, until time.Time){
		"no leader": func(b *bubble, until time.Time) {
			b.logs.answer = func(_ context.Context, p int32, _ int64) int16 {
				if int(p) < n && time.Now().Before(until) {
					return int16(kafka.NotLeaderForPartition)
				}
				return 0
			}
		},
		"a quota that lets nothing through": func(b *bubble, until time.Time) {
			b.logs.throttle = func(p int32) time.Duration {
				if int(p) < n && time.Now().Before(until) {
					return 9 * time.Second
				}
				return 0
			}
		},
	} {
		for position, of := range map[string]string{"0": "a batch", "0..500@0000000000000001": "a sweep that was taken over"} {
			t.Run(name+", "+of, func(t *testing.T) {
				if position == "0" {
					oneShard(t, "who has batches waits alike for any number of shards")
				}
				synctest.Test(t, func(t *testing.T) {
					b := newBubble(t, n+1, nil)
					for p := range n {
						b.standings.stands(field(p), position)
					}
					hog := b.consumer.Budget.Account()
					require.True(t, hog.Take(b.consumer.Budget.Total()))
					stop := b.run()
					defer stop()
					for p := range n + 1 {
						b.send(p, some(fmt.Sprintf("%0200d-%d-", 0, p), 500, 5)...)
						time.Sleep(time.Second)
					}
					synctest.Wait()
					require.Equal(t, n+1, b.consumer.Budget.Waiting())
					b.logs.mu.Lock()
					begin(b, time.Now().Add(outage))
					b.logs.mu.Unlock()
					hog.Release(b.consumer.Budget.Total())
					time.Sleep(5 * time.Second)
					require.Equal(t, int64(500), b.consumer.Stats.Count().Applied, "whoever has a broker is served")
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					require.Equal(t, workers.StateWaiting, b.workers[0].status.Line().State)
					require.Zero(t, b.consumer.Budget.Waiting())
					b.send(n, some(fmt.Sprintf("%0200d-again-", 0), 500, 5)...)
					time.Sleep(5 * time.Second)
					require.Equal(t, int64(1000), b.consumer.Stats.Count().Applied, "and is from then on")
					time.Sleep(outage)
					b.counts(time.Minute)
				})
			})
		}
	}
}

// A takeover that must wait for memory before it has folded anything has nothing to read again: it continues
// where it was.
func TestASweepOfWhichNothingWasFoldedIsReadOnAfterAWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches, each = 10, 500
		b := newBubble(t, 1, func(c *Config) { c.FetchBytes = 200 << 10 })
		b.standings.stands(field(0), fmt.Sprintf("0..%d@ffffffffffffffff", batches*each))
		for i := range batches {
			b.send(0, some(fmt.Sprintf("%0200d-%d-", 0, i), each, 5)...)
		}
		hog := b.consumer.Budget.Account()
		asked := map[int64]int{}
		b.logs.answer = func(_ context.Context, _ int32, offset int64) int16 {
			if asked[offset]++; offset < batches*each/2 || asked[offset] > 2 {
				return 0
			}
			hog.Take(b.consumer.Budget.Total() - b.consumer.Budget.Used())
			if asked[offset] == 2 {
				return 0
			}
			return int16(kafka.NotLeaderForPartition) // memory that is kept for the next answer is released
		}
		stop := b.run()
		defer stop()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, b.consumer.Budget.Waiting())
		require.Positive(t, hog.Held())
		b.logs.mu.Lock()
		b.logs.answer = nil
		b.logs.mu.Unlock()
		hog.Release(hog.Held())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, fmt.Sprint(batches*each), b.standings.at(0))
		require.Equal(t, int64(batches*each), b.consumer.Stats.Count().Repeated)
		require.Equal(t, int64(batches*each), b.consumer.Stats.Records.Load(), "nothing is read twice")
	})
}

// A broker that answers every second fetch would answer only between turns: the records that are read then
// don't fit, and those that would fit aren't read.
func TestATakeoverThatNeedsATurnGetsThroughWhileOnlySomeFetchesAreAnswered(t *testing.T) {
	for _, log := range []struct{ fetches, each int }{{20, 500}, {21, 500}, {22, 500}, {23, 500}, {23, 590}} { // last: the first fetch after halving fails
		fetches, each := log.fetches, log.each
		for of := 2; of <= 3; of++ { // one of so many fetches is answered
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, 1, func(c *Config) { c.FoldMemory, c.FetchBytes = 6<<20, 200<<10 })
				b.standings.stands(field(0), fmt.Sprintf("0..%d@0000000000000001", fetches*each))
				for i := range fetches {
					b.send(0, some(fmt.Sprintf("%0200d-%d-", 0, i), each, 5)...)
				}
				n := b.answersOne(of)
				stop := b.run()
				defer stop()
				b.counts(time.Minute)
				require.Less(t, n.Load(), int64(40*fetches), "of %d fetches one in %d", fetches, of)
			})
		}
	}
}

// answersOne makes the broker answer one of so many fetches. It returns the number of fetches.
func (b *bubble) answersOne(of int) *atomic.Int64 {
	n := new(atomic.Int64)
	b.logs.answer = func(context.Context, int32, int64) int16 {
		if n.Add(1)%int64(of) == 0 {
			return 0
		}
		return int16(kafka.NotLeaderForPartition)
	}
	return n
}

// The members of the first response count already, so the worker holds nothing after that answer, and the next fetch fails.
func TestATakeoverKeepsItsTurnAfterAnAnswerOfWhichItHoldsNothing(t *testing.T) {
	const from = uint64(1) << 60
	for _, fetches := range []int{20, 21, 22, 23} {
		for of := 2; of <= 3; of++ {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, 1, func(c *Config) { c.FoldMemory, c.FetchBytes = 6<<20, 200<<10 })
				b.standings.stands(field(0), fmt.Sprintf("0..%d@%016x", fetches*500, from))
				counted := func(e earned) bool { return fold.Hash([]byte(e.User)) < from }
				first := slices.DeleteFunc(some(fmt.Sprintf("%0200d-first-", 0), 20_000, 5), func(e earned) bool { return !counted(e) })
				b.send(0, first[:500]...)
				b.want = 0
				for i := range fetches - 1 {
					all := some(fmt.Sprintf("%0200d-%d-", 0, i), 500, 5)
					b.send(0, all...)
					b.want -= int64(len(slices.DeleteFunc(all, func(e earned) bool { return !counted(e) })))
				}
				n := b.answersOne(of)
				stop := b.run()
				defer stop()
				b.counts(time.Minute)
				require.Less(t, n.Load(), int64(40*fetches), "of %d fetches one in %d", fetches, of)
			})
		}
	}
}
