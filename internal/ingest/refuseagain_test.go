package ingest

// Readings for the dead letters of members who are refused, that are cut off.

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
)

const (
	richEvents   = 3000 // of which every third is of a member who is refused
	richPerBatch = 300
)

// overflowing has each partition fold these events into one batch, and hold it until
// release is called.
func overflowing(b *bubble, partitions int) (release func()) {
	b.standings.do(func() { b.standings.limit, b.standings.held = 1000, true })
	for p := range partitions {
		b.send(p, 0, earned{User: fmt.Sprint("first-", p), Points: 1, At: time.Now().UnixMilli()})
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for p := range partitions {
		all := some(fmt.Sprintf("%0100d-%d-", 0, p), richEvents, 5)
		for i := 0; i < len(all); i += 3 {
			all[i].Points = 1001
		}
		for i := 0; i < len(all); i += richPerBatch {
			b.send(p, 0, all[i:i+richPerBatch]...)
		}
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
	require.Equal(b.t, int64(partitions*(richEvents+1)), b.consumer.Stats.Records.Load(), "all is folded")
	return func() { b.standings.do(func() { b.standings.held = false }) }
}

// through waits until the partitions are, and requires a letter for every event that was
// refused, once.
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

// Whatever cuts off a reading, the letters that it wrote are known to the next one, as
// those of records that are bad by themselves are.
func TestLettersOfRefusedMembersAreWrittenOnceThoughTheirReadingIsDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, func(c *Config) { c.FetchBytes = 100 << 10; c.PieceTime = time.Microsecond })
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
			if box.writes > int(outages.Load()) && offset < richEvents { // one set more than at the last
				outages.Add(1)
				until = time.Now().Add(outagePatience + 5*time.Second)
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
