package ingest

// This file tests one worker, without a group, between the fake broker and the tests' standings: each promise
// about the ledger.

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
)

// sweepHalfway leaves the ledgers in the middle of a sweep of the whole log. The previous owner used small
// pieces.
func (w *world) sweepHalfway() {
	w.t.Helper()
	end := w.end(topic, 0)
	var halting sync.WaitGroup
	halting.Add(int(of))
	w.standings.apply = func(n int, p *ledger.Piece) reply {
		if n == 1 {
			halting.Done()
		}
		if n > 0 {
			return reply{err: errLost}
		}
		return reply{}
	}
	first := w.worker(0, func(c *Config) { c.FetchBytes = 8 << 20; c.PieceTime = time.Nanosecond })
	halting.Wait()
	first.stop(w.t)
	w.standings.apply = nil
	all, err := w.standings.positions(0)
	require.NoError(w.t, err)
	for _, at := range all {
		require.True(w.t, at.Sweeping(), "%v", all)
		require.LessOrEqual(w.t, at.To, end)
		require.Equal(w.t, all[0].To, at.To, "%v", all)
	}
}

func TestASweepThatMemoryCannotHoldIsReadSeveralTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	id := strings.Repeat("x", 240)
	for i := range 10 {
		w.send(0, some(fmt.Sprint(id, i, "-"), 2000, 5)...)
	}
	w.sendRaw(0, []byte("bad"))
	w.send(0, some("z", 10, 5)...)
	w.sweepHalfway()
	all, err := w.standings.positions(0)
	require.NoError(t, err)
	at := all.Next()
	before := len(w.deadLetters())
	// A reserve of 4 MiB, of which a batch may use 3.3 MiB; the members take more than 6 MiB.
	r := w.worker(0, func(c *Config) { c.FoldMemory = 12 << 20; c.FetchBytes = 64 << 10 })
	w.reaches(0)
	readings := 0
	w.standings.do(func() {
		for _, c := range w.standings.calls {
			if c.outcome == ledger.Applied && c.err == nil && strings.HasPrefix(c.piece, fmt.Sprintf("%d..%d@", at.From, at.To)) {
				readings++
			}
		}
	})
	require.Greater(t, readings, 1)
	require.LessOrEqual(t, len(w.deadLetters())-before, 1, "one sweep's letters are written once by an owner")
	for range 2 * batchesPerWorker { // later batches count normally
		w.sendRaw(0, nil)
		w.reaches(0)
	}
	eventually(t, "the tombstones are counted", func() bool { return w.stats.Skipped.Load() == 2*batchesPerWorker })
	r.stop(t)
	require.Equal(t, int64(1), w.stats.Dead(event.Malformed))
}

// Gathered dead letters hold memory that the members need.
func TestASweepThatBeginsWithBadEventsIsReadInASmallMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	const bad = 20
	w.sendRaw(0, slices.Repeat([][]byte{[]byte("bad")}, bad)...)
	for i := range 50 { // batches that fit in a small memory
		w.send(0, some(fmt.Sprint("u", i, "-"), 60, 5)...)
	}
	w.sweepHalfway()
	before := len(w.deadLetters())
	r := w.worker(0, func(c *Config) { c.FoldMemory = 256 << 10; c.FetchBytes = 8 << 10 })
	w.reaches(0)
	require.Len(t, w.deadLetters(), before+bad, "they are written once by an owner")
	r.stop(t)
}

// A new connection may lead to another Redis, so its ledger is compared as soon as the piece in flight is done,
// not only with the next tick.
func TestANewConnectionHasTheLedgerLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, nil)
		var applied, looked []time.Time
		b.standings.apply = func(int, *ledger.Piece) reply {
			b.standings.do(func() { applied = append(applied, time.Now()) })
			b.consumer.Reconnected()
			return reply{}
		}
		b.standings.position = func(int) error {
			looked = append(looked, time.Now())
			return nil
		}
		stop := b.run()
		time.Sleep(lookEvery / 3)      // between two comparisons
		b.send(0, some("a", 50, 5)...) // so many that there is a piece for every shard
		b.counts(time.Minute)
		synctest.Wait()
		require.Len(t, applied, int(of))
		after := 0
		for _, at := range looked {
			if at.Equal(applied[0]) {
				after++
			}
		}
		require.GreaterOrEqual(t, after, int(of), "at every shard's")
		stop()
	})
}

func TestAHaltIsToldOnceLookedAtEverySecondAndLeft(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]struct {
		answer *ledger.Answer
		err    error
		reason string
	}{
		"lost":     {answer: &ledger.Answer{Outcome: ledger.Lost, Window: "global:weekly:2026-W47"}, reason: health.HaltBoard},
		"unlisted": {answer: &ledger.Answer{Outcome: ledger.Unlisted, Window: "global:weekly:2026-W47"}, reason: health.HaltUnlisted},
		"bounds":   {answer: &ledger.Answer{Outcome: ledger.OtherBounds, Window: "w", Found: "as it is listed", Start: 1, End: 2}, reason: health.HaltBounds},
		"foreign":  {answer: &ledger.Answer{Outcome: ledger.Foreign, Window: "w", Members: []string{"m"}}, reason: health.HaltForeign},
		"schema":   {answer: &ledger.Answer{Outcome: ledger.OtherSchema, Found: "{}"}, reason: health.HaltSchema},
		"rights":   {err: errHalting, reason: health.HaltRedis},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.send(0, some("a", 100, 5)...)
			w.send(1, some("b", 100, 5)...)
			var broken atomic.Bool
			broken.Store(true)
			w.standings.apply = func(_ int, p *ledger.Piece) reply {
				if broken.Load() && p.Partition.Number == 0 {
					return reply{answer: h.answer, err: h.err}
				}
				return reply{}
			}
			r := w.worker(0, nil)
			w.workerOf(r.consumer, 1)
			eventually(t, "the other partition runs on", func() bool { return w.standings.at(1) == "100" })
			eventually(t, "it has been looked at three times", func() bool {
				n := make([]int, of) // in each attempt, one or more shards may get to the refusal
				w.standings.do(func() {
					for _, c := range w.standings.calls {
						if strings.HasPrefix(c.piece, "0 ") && (c.err != nil || c.outcome != ledger.Applied) {
							n[c.shard]++
						}
					}
				})
				return slices.Max(n) >= 3
			})
			l := r.status.Line()
			require.Equal(t, workers.StateHalted, l.State)
			require.Equal(t, h.reason, l.Reason)
			require.NotEmpty(t, l.What)
			require.NotEmpty(t, l.Remedy)
			w.said(1, "partition halted")
			w.said(0, "goes on")
			broken.Store(false)
			w.reaches(0, 1)
			eventually(t, "it runs", func() bool { return r.status.Line().State == workers.StateRunning })
			w.said(1, "partition goes on")
		})
	}
}

func TestATornLedgerHaltsUntilItIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	r := w.worker(0, nil)
	w.reaches(0)
	w.standings.do(func() { w.standings.stands(r.Field, ledger.Torn(ledger.At(10))) })
	eventually(t, "it is seen", func() bool { return r.status.Line().Reason == health.HaltTorn })
	w.standings.do(func() { w.standings.stands(r.Field, "10") })
	w.send(0, some("b", 10, 5)...)
	w.reaches(0)
	w.said(1, "partition halted")
	eventually(t, "it runs", func() bool { return r.status.Line().State == workers.StateRunning })
}

func TestAnotherSchemaHaltsBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.standings.written(`{"v":2}`)
	r := w.worker(0, nil)
	eventually(t, "it is seen", func() bool { return r.status.Line().Reason == health.HaltSchema })
	require.Zero(t, w.stats.FetchBytes.Load())
}

func TestAGenerationsEndStopsAfterThePieceInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 5000, 5)...)
	block := make(chan struct{})
	var blocked sync.WaitGroup
	blocked.Add(int(of))
	w.standings.apply = func(n int, _ *ledger.Piece) reply {
		if n == 0 {
			blocked.Done()
			<-block
		}
		return reply{}
	}
	r := w.worker(0, func(c *Config) { c.FetchBytes = 8 << 20 })
	blocked.Wait()
	r.cancel(errGenerationEnded)
	select {
	case <-r.done:
		t.Fatal("the piece in flight wasn't waited for")
	case <-time.After(100 * time.Millisecond):
	}
	close(block)
	r.stop(t)
	w.standings.do(func() {
		for _, calls := range w.standings.callsOf() {
			require.Len(t, calls, 1, "no further piece was sent")
			require.Equal(t, ledger.Applied, calls[0].outcome)
			require.NoError(t, calls[0].err)
		}
	})
	require.Zero(t, r.consumer.Budget.Used())
	w.standings.apply = nil
	w.worker(0, nil)
	w.reaches(0)
}
