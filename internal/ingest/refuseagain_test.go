package ingest

// This file tests interrupted rereadings for the dead letters of refused members.

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/source"
)

const (
	richEvents   = 3000 // every third event is of a refused member
	richPerBatch = 300
)

// overflowing makes each partition fold its events into one batch, and hold it until release is called.
func overflowing(b *bubble, partitions int) (release func()) {
	b.standings.do(func() { b.standings.limit, b.standings.held = 1000, true })
	for p := range partitions {
		b.send(p, earned{User: fmt.Sprint("first-", p), Points: 1, At: time.Now().UnixMilli()})
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for p := range partitions {
		all := some(fmt.Sprintf("%0100d-%d-", 0, p), richEvents, 5)
		for i := 0; i < len(all); i += 3 {
			all[i].Points = 1001
		}
		for i := 0; i < len(all); i += richPerBatch {
			b.send(p, all[i:i+richPerBatch]...)
		}
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
	require.Equal(b.t, int64(partitions*(richEvents+1)), b.consumer.Stats.Records.Load(), "all is folded")
	return func() { b.standings.do(func() { b.standings.held = false }) }
}

// through waits until the partitions have applied everything, and requires exactly one dead letter for every
// refused event.
func (b *bubble) through(box *letterBox, partitions int, within time.Duration) {
	b.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		done := 0
		for p := range partitions {
			if b.standings.at(p) == strconv.Itoa(richEvents+1) {
				done++
			}
		}
		if done == partitions {
			break
		}
		require.Less(b.t, time.Since(began), within, "%d of %d are through", done, partitions)
	}
	synctest.Wait()
	require.Equal(b.t, int64(partitions*richEvents/3), b.consumer.Stats.Dead(event.Overflow))
	require.Len(b.t, box.all(), partitions*richEvents/3, "every letter is there")
	for key, times := range box.all() {
		require.Equal(b.t, 1, times, key)
	}
}

// However a rereading is interrupted, the next one knows the dead letters that it wrote, like those of bad
// records.
func TestLettersOfRefusedMembersAreWrittenOnceThoughTheirReadingIsDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, func(c *Config) { c.FetchBytes = 100 << 10 })
		box := &letterBox{taken: map[string]int{}, code: func(int32) int16 { return 0 }}
		b.logs.produce = box.produce
		stop := b.run()
		defer stop()
		release := overflowing(b, 1)
		var outages atomic.Int32
		var until time.Time
		b.logs.mu.Lock()
		b.logs.answer = func(_ context.Context, _ int32, offset int64) int16 {
			box.mu.Lock()
			defer box.mu.Unlock()
			if box.writes > int(outages.Load()) && offset < richEvents { // one set more than at the last outage
				outages.Add(1)
				until = time.Now().Add(source.OutagePatience + 5*time.Second)
			}
			if time.Now().Before(until) {
				return int16(kafka.NotLeaderForPartition)
			}
			return 0
		}
		b.logs.mu.Unlock()
		release()
		b.through(box, 1, 10*time.Minute)
		require.Greater(t, outages.Load(), int32(2))
	})
}

// A rereading for refused members holds its batch, one partition at a time. Other partitions that want memory
// don't wait for all rereadings, neither under a quota that lets a set through at intervals nor with brokers
// that don't answer.
func TestReadingsForRefusedMembersHoldUpNobodyWhoWantsMemory(t *testing.T) {
	const n = 8
	for name, begin := range map[string]func(b *bubble, box *letterBox, until time.Time){
		"a quota for letters": func(_ *bubble, box *letterBox, _ time.Time) { box.throttle = 13 * time.Second },
		"letters that are refused for their size, and a quota": func(_ *bubble, box *letterBox, _ time.Time) {
			box.throttle, box.most = 2*time.Second, 100
		},
		"a quota that lets nothing through": func(b *bubble, _ *letterBox, until time.Time) {
			b.logs.throttle = func(p int32) time.Duration {
				if p < n && time.Now().Before(until) {
					return 9 * time.Second
				}
				return 0
			}
		},
		"no leader": func(b *bubble, _ *letterBox, until time.Time) {
			b.logs.answer = func(_ context.Context, p int32, _ int64) int16 {
				if p < n && time.Now().Before(until) {
					return int16(kafka.NotLeaderForPartition)
				}
				return 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, n+1, func(c *Config) { c.FoldMemory, c.FetchBytes = 8<<20, 100<<10 })
				box := &letterBox{taken: map[string]int{}, code: func(int32) int16 { return 0 }, muted: map[int32]time.Time{}}
				b.logs.produce = box.produce
				stop := b.run()
				defer stop()
				release := overflowing(b, n)
				hog := b.consumer.Budget.Account()
				require.True(t, hog.Take(b.consumer.Budget.Total()-b.consumer.Budget.Used()))
				b.logs.mu.Lock()
				begin(b, box, time.Now().Add(10*time.Minute))
				b.logs.mu.Unlock()
				release()
				time.Sleep(time.Second)
				more := fewer(20_000)
				all := some(fmt.Sprintf("%0200d-healthy-", 0), more, 5)
				for i := 0; i < more; i += 400 {
					b.send(n, all[i:min(i+400, more)]...)
				}
				began := time.Now()
				for b.standings.at(n) != fmt.Sprint(more) {
					time.Sleep(time.Second)
					require.Less(t, time.Since(began), 45*time.Second, "it is at %s, %d wait for memory, and %v", b.standings.at(n), b.consumer.Budget.Waiting(), b.workers[n].status.Line())
				}
				for key, times := range box.all() {
					require.Equal(t, 1, times, key)
				}
				hog.Release(hog.Held())
				if box.most == 0 { // else it takes hours
					b.through(box, n, 2*time.Hour)
				}
			})
		})
	}
}
