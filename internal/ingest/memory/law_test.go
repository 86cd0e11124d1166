package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Every waiter is served, for any number of partitions and any budget that holds a reserve, under two
// conditions: a partition that holds memory releases it within the time of a call or a batch, without waiting
// for more, and an idle partition holds nothing. Each partition reads responses as a reader does. The drawn
// numbers are the sizes of responses, and the durations of idle times, calls and sweeps.
func TestWhoeverWaitsIsServedForAnyNumberOfPartitions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		partitions := rapid.IntRange(1, 300).Draw(rt, "partitions")
		total := rapid.Int64Range(300, 3000).Draw(rt, "total")
		reserve := rapid.Int64Range(100, total).Draw(rt, "reserve")
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 99), 1, 20).Draw(rt, "sizes")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 20).Draw(rt, "pauses") // ms
		synctest.Test(t, func(t *testing.T) {
			b := New(total, reserve)
			longest := time.Duration(0)
			done := make(chan time.Duration, partitions)
			for p := range partitions {
				go func() {
					done <- reads(t.Context(), b.Account(), p, sizes, pauses, reserve)
				}()
			}
			// Every waiter before it in the queue gets one turn, and each partition may be delayed by a call or
			// a sweep.
			limit := time.Duration(partitions+2) * 10 * 4 * 50 * time.Millisecond
			for range partitions {
				select {
				case waited := <-done:
					longest = max(longest, waited)
				case <-time.After(limit):
					rt.Fatalf("somebody of %d partitions wasn't served in %v; %d of %d bytes are in use, and %d wait", partitions, limit, b.Used(), total, b.Waiting())
				}
			}
			if b.Used() != 0 || b.Waiting() != 0 {
				rt.Fatalf("%d bytes are in use by partitions that are idle, and %d wait", b.Used(), b.Waiting())
			}
		})
	})
}

// reads processes ten responses, and returns the longest wait.
func reads(ctx context.Context, a *Account, p int, sizes []int64, pauses []int, reserve int64) (longest time.Duration) {
	pause := func(i int) { time.Sleep(time.Duration(pauses[i%len(pauses)]) * time.Millisecond) }
	held := int64(0)
	letGo := func() {
		a.EndTurn()
		a.Release(held)
		held = 0
	}
	for i := range 10 {
		pause(p + i) // idle, with no memory
		for n := sizes[(p+i)%len(sizes)]; !a.Take(min(n, reserve)); {
			pause(p + 2*i) // its batch is swept
			letGo()
			began := time.Now()
			if err := a.Wait(ctx, nil); err != nil {
				return longest
			}
			longest = max(longest, time.Since(began))
		}
		held += min(sizes[(p+i)%len(sizes)], reserve)
		pause(p + 3*i) // a call, or the sweep
		if i%3 != 0 {
			letGo()
		}
	}
	letGo()
	return longest
}
