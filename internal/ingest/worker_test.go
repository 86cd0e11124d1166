package ingest

// One worker, without a group, between the fake broker and the standings of the
// tests: each promise that it makes about the ledger.

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
)

func TestAWorkerCountsEveryEventOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 300, 5)...)
	w.worker(0, nil)
	w.reaches(0)
	w.send(0, some("a", 200, -2)...)
	w.send(0, some("b", 10, 1)...)
	w.reaches(0)
	w.counted(510)
	require.Equal(t, int64(510), w.stats.Applied.Load())
	eventually(t, "the end is noted for Kafka", func() bool { return w.standings.at(0) == "510" })
}

func TestRecordsWithoutAMemberMoveThePosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sendRaw(0, []byte("{"), nil, []byte(`{"user_id":"u"}`), []byte(`{"user_id":"u","points":1,"occurred_at":1}`))
	w.worker(0, func(c *Config) { c.Rules.Lateness = 1000 })
	w.reaches(0)
	w.counted(4)
	require.Equal(t, int64(1), w.stats.Dead(event.Malformed))
	require.Equal(t, int64(1), w.stats.Dead(event.Invalid))
	require.Equal(t, int64(1), w.stats.Skipped.Load())
	require.Equal(t, int64(1), w.stats.Late.Load())
	require.Zero(t, w.stats.Applied.Load())
	require.Len(t, w.deadLetters(0), 2)
}

func TestOnlyCommittedTransactionsCountAndMarkersAreNoEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	transaction := func(end kgo.TransactionEndTry, all ...earned) {
		require.NoError(t, c.BeginTransaction())
		for _, e := range all {
			value := fmt.Sprintf(`{"user_id":%q,"points":%d,"occurred_at":%d}`, e.User, e.Points, e.At)
			require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Value: []byte(value)}).FirstErr())
			if end == kgo.TryCommit {
				w.counts(e)
			}
		}
		require.NoError(t, c.Flush(t.Context()))
		require.NoError(t, c.EndTransaction(t.Context(), end))
	}
	transaction(kgo.TryAbort, some("x", 3, 7)...)
	transaction(kgo.TryCommit, some("a", 3, 7)...)
	w.worker(0, nil)
	w.reaches(0)
	transaction(kgo.TryAbort, some("y", 3, 7)...) // ends in a marker
	w.reaches(0)
	w.counted(3)
	require.Empty(t, w.deadLetters(0))
}

func TestAnAnswerThatIsLostIsAskedForAgainWithTheSamePiece(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 50, 5)...)
	w.standings.apply = func(n int, _ *ledger.Piece) reply {
		switch n {
		case 0, 1:
			return reply{err: errLost} // never arrived
		case 2:
			return reply{err: errLost, executed: true}
		}
		return reply{}
	}
	w.worker(0, nil)
	w.reaches(0)
	eventually(t, "it is known that the piece is in", func() bool { return w.stats.Applied.Load() == 50 })
	w.standings.do(func() {
		for _, c := range w.standings.calls[:4] {
			require.Equal(t, w.standings.calls[0].piece, c.piece)
		}
	})
	require.Equal(t, int64(3), w.stats.Retries.Load())
	require.Zero(t, w.stats.AllMoves())
}

// sweepHalfway has the ledger stand in the middle of a sweep of all that the log
// holds.
// The owner before cut small pieces.
func (w *world) sweepHalfway() {
	w.t.Helper()
	end := w.end(topic, 0)
	halting := make(chan struct{})
	w.standings.apply = func(n int, p *ledger.Piece) reply {
		if n == 1 {
			close(halting)
		}
		if n > 0 {
			return reply{err: errLost}
		}
		return reply{}
	}
	first := w.worker(0, func(c *Config) { c.FetchBytes = 8 << 20; c.PieceTime = time.Nanosecond })
	<-halting
	first.stop(w.t)
	w.standings.apply = nil
	at, err := ledger.Parse(w.standings.at(0))
	require.NoError(w.t, err)
	require.True(w.t, at.Sweeping(), "%v", at)
	require.LessOrEqual(w.t, at.To, end)
}

func TestASweepIsTakenOverWithOtherCuts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 2000, 5)...)
	w.sendRaw(0, []byte("bad"))
	w.sweepHalfway()
	applied := w.stats.Applied.Load()
	require.Positive(t, applied)
	w.send(0, some("a", 100, 1)...)
	w.worker(0, func(c *Config) { c.PieceTime = time.Second })
	w.reaches(0)
	// What the first had swept is repeated for the second; together they applied all.
	w.counted(2101 + applied)
	require.Equal(t, int64(2100), w.stats.Applied.Load())
	require.Equal(t, applied, w.stats.Repeated.Load())
	require.Equal(t, int64(1), w.stats.Dead(event.Malformed))
	require.NotEmpty(t, w.deadLetters(0))
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
	at, err := ledger.Parse(w.standings.at(0))
	require.NoError(t, err)
	before := len(w.deadLetters(0))
	// A reserve of 4 MiB, 3.3 of them for a batch, and the members take above 6.
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
	require.LessOrEqual(t, len(w.deadLetters(0))-before, 1, "one sweep's letters are written once by an owner")
	r.stop(t)
	require.Equal(t, int64(1), w.stats.Dead(event.Malformed))
}

func TestAPositionThatMovedUnderAWorkerVoidsAllThatItHasFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 100, 5)...)
	block, blocked := make(chan struct{}), make(chan struct{})
	w.standings.apply = func(n int, _ *ledger.Piece) reply {
		if n == 0 {
			close(blocked)
			<-block
		}
		return reply{}
	}
	zombie := w.worker(0, nil)
	<-blocked
	w.send(0, some("a", 100, 5)...) // prefetched by the zombie while it hangs
	other := w.worker(0, nil)
	w.reaches(0)
	close(block)
	eventually(t, "the zombie has found the ledger moved", func() bool { return w.stats.AllMoves() > 0 })
	w.send(0, some("b", 20, 5)...)
	w.reaches(0)
	zombie.stop(t)
	other.stop(t)
	w.reaches(0)
}

func TestARollbackIsSeenWhereNoEventFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	w.worker(0, nil)
	w.reaches(0)
	restore := w.standings.snapshot()
	w.send(0, some("b", 10, 5)...)
	w.reaches(0)
	restore()
	began := time.Now()
	w.reaches(0)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Equal(t, int64(1), w.stats.AllMoves())
	require.Equal(t, int64(1), w.stats.Moves(MoveRolledBack))
}

func TestARollbackBehindAnOutageIsSeenAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	w.worker(0, nil)
	w.reaches(0)
	restore := w.standings.snapshot()
	w.send(0, some("b", 10, 5)...)
	w.reaches(0)
	failed := make(chan struct{}, 1)
	w.standings.do(func() {
		w.standings.position = func() error { return errLost }
		w.standings.state = func() error {
			select {
			case failed <- struct{}{}:
			default:
			}
			return errLost
		}
	})
	<-failed // a look ended the worker's flow, and the next one can't begin
	restore()
	w.standings.do(func() { w.standings.position, w.standings.state = nil, nil })
	w.reaches(0)
	require.Equal(t, int64(1), w.stats.AllMoves())
	require.Equal(t, int64(1), w.stats.Moves(MoveRolledBack))
	w.said(1, "the ledger has moved")
}

func TestANewConnectionHasTheLedgerLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	r := w.worker(0, nil)
	w.reaches(0)
	restore := w.standings.snapshot()
	w.send(0, some("b", 10, 5)...)
	w.reaches(0)
	restore()
	r.consumer.Reconnected()
	w.send(0, some("c", 1, 5)...)
	w.reaches(0)
}

func TestAWipedRedisIsFilledAgainFromTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.send(0, some("a", 100, 5)...)
	w.send(1, some("b", 100, 5)...)
	w.config.Start.From = FromLatest // a lost Redis is no first start
	_, stop := w.consumer(func(c *Config) { c.Start.From = FromEarliest })
	w.reaches(0, 1)
	w.standings.wipe()
	w.reaches(0, 1)
	w.said(1, "Redis was lost")
	require.NoError(t, stop())
	w.standings.do(func() {
		for field, at := range w.standings.ledger {
			require.Equal(t, at, strconv.FormatInt(w.standings.refills[field], 10), "the log's end as it was then")
		}
		require.Len(t, w.standings.refills, 2)
	})
}

func TestAHoldIsWaitedForAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	r := w.worker(0, nil)
	w.reaches(0)
	w.standings.do(func() { w.standings.held = true })
	w.send(0, some("a", 10, 5)...)
	eventually(t, "the hold is shown", func() bool {
		l := r.line()
		return l.State == StateWaiting && strings.Contains(l.What, "rebuild")
	})
	require.Equal(t, "10", w.standings.at(0))
	w.standings.do(func() { w.standings.held = false })
	w.reaches(0)
	eventually(t, "it runs", func() bool { return r.line().State == StateRunning })
}

func TestMembersOutOfRangeAreTakenOutOfThePieceAndDeadLettered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.standings.limit = 100
	w.send(0, some("a", 50, 40)...)
	want := cloned(w.want)
	w.send(0, some("rich", 3, 90)...)
	w.send(0, some("rich", 2, 90)...) // rich0 and rich1 would have 180
	w.standings.apply = func(n int, _ *ledger.Piece) reply {
		if n == 0 { // all of it comes in one batch then
			time.Sleep(300 * time.Millisecond)
		}
		return reply{}
	}
	w.worker(0, func(c *Config) { c.FetchBytes = 8 << 20 })
	eventually(t, "the log is through", func() bool { return w.standings.at(0) == "55" })
	w.counted(55)
	letters := w.deadLetters(0)
	w.standings.do(func() {
		over := 0
		for listing, members := range w.standings.boards {
			for m, got := range members {
				if !strings.HasPrefix(m, "rich") {
					require.Equal(t, want[listing][m], got)
					continue
				}
				require.Equal(t, int64(90), got.points)
				over++
			}
		}
		require.NotZero(t, over)
	})
	require.NotEmpty(t, letters)
	for _, l := range letters {
		require.Equal(t, "overflow", l["standings-reason"])
		require.Contains(t, l["value"], "rich")
	}
	require.Equal(t, int64(len(letters)), w.stats.Dead(event.Overflow))
	require.Equal(t, int64(55-len(letters)), w.stats.Applied.Load())
}

func TestAHaltIsToldOnceLookedAtEverySecondAndLeft(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]struct {
		answer *ledger.Answer
		err    error
		reason string
	}{
		"lost":     {answer: &ledger.Answer{Outcome: ledger.Lost, Window: "global:weekly:2026-W47"}, reason: HaltBoard},
		"unlisted": {answer: &ledger.Answer{Outcome: ledger.Unlisted, Window: "global:weekly:2026-W47"}, reason: HaltUnlisted},
		"bounds":   {answer: &ledger.Answer{Outcome: ledger.OtherBounds, Window: "w", Found: "1 2 3"}, reason: HaltBounds},
		"foreign":  {answer: &ledger.Answer{Outcome: ledger.Foreign, Window: "w", Members: []string{"m"}}, reason: HaltForeign},
		"schema":   {answer: &ledger.Answer{Outcome: ledger.OtherSchema, Found: "{}"}, reason: HaltSchema},
		"rights":   {err: errHalting, reason: HaltRedis},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.send(0, some("a", 100, 5)...)
			w.send(1, some("b", 100, 5)...)
			var broken atomic.Bool
			broken.Store(true)
			w.standings.apply = func(_ int, p *ledger.Piece) reply {
				if broken.Load() && p.Partition == 0 {
					return reply{answer: h.answer, err: h.err}
				}
				return reply{}
			}
			r := w.worker(0, nil)
			w.workerOf(r.consumer, 1)
			eventually(t, "the other partition runs on", func() bool { return w.standings.at(1) == "100" })
			eventually(t, "it has been looked at three times", func() bool {
				n := 0
				w.standings.do(func() {
					for _, c := range w.standings.calls {
						if strings.HasPrefix(c.piece, "0 ") && (c.err != nil || c.outcome != ledger.Applied) {
							n++
						}
					}
				})
				return n >= 3
			})
			l := r.line()
			require.Equal(t, StateHalted, l.State)
			require.Equal(t, h.reason, l.Reason)
			require.NotEmpty(t, l.What)
			require.NotEmpty(t, l.Remedy)
			w.said(1, "partition halted")
			w.said(0, "goes on")
			broken.Store(false)
			w.reaches(0, 1)
			eventually(t, "it runs", func() bool { return r.line().State == StateRunning })
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
	w.standings.do(func() { w.standings.ledger[r.field] = ledger.Torn(ledger.At(10)) })
	eventually(t, "it is seen", func() bool { return r.line().Reason == HaltTorn })
	w.standings.do(func() { w.standings.ledger[r.field] = "10" })
	w.send(0, some("b", 10, 5)...)
	w.reaches(0)
	w.said(1, "partition halted")
	eventually(t, "it runs", func() bool { return r.line().State == StateRunning })
}

func TestASchemaThatIsGoneHalts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 10, 5)...)
	r := w.worker(0, nil)
	w.reaches(0)
	w.standings.do(func() { w.standings.schema = "" })
	w.send(0, some("b", 10, 5)...)
	eventually(t, "it is seen", func() bool { return r.line().Reason == HaltSchema })
	time.Sleep(1500 * time.Millisecond)
	require.Less(t, w.stats.AllMoves(), int64(3), "it looks once a second")
	w.standings.do(func() { w.standings.schema = ourSchema })
	w.reaches(0)
}

func TestAnotherSchemaHaltsBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.standings.schema = `{"v":2}`
	r := w.worker(0, nil)
	eventually(t, "it is seen", func() bool { return r.line().Reason == HaltSchema })
	require.Zero(t, w.stats.FetchBytes.Load())
}

func TestAGenerationsEndStopsAfterThePieceInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 5000, 5)...)
	block, blocked := make(chan struct{}), make(chan struct{})
	w.standings.apply = func(n int, _ *ledger.Piece) reply {
		if n == 0 {
			close(blocked)
			<-block
		}
		return reply{}
	}
	r := w.worker(0, func(c *Config) { c.FetchBytes = 8 << 20 })
	<-blocked
	r.cancel(errGenerationEnded)
	select {
	case <-r.done:
		t.Fatal("the piece in flight wasn't waited for")
	case <-time.After(100 * time.Millisecond):
	}
	close(block)
	r.stop(t)
	w.standings.do(func() {
		require.Len(t, w.standings.calls, 1, "no further piece was sent")
		require.Equal(t, ledger.Applied, w.standings.calls[0].outcome)
		require.NoError(t, w.standings.calls[0].err)
	})
	require.Zero(t, r.memory.Used())
	w.standings.apply = nil
	w.worker(0, nil)
	w.reaches(0)
}

func TestAWorkerOnAReserveGivesItBackOnceItHasNothingToRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	for _, p := range []int{4, 5} {
		w.send(p, some(fmt.Sprint("p", p, "-"), 100, 5)...)
	}
	cfg := w.config
	cfg.FoldMemory = 4 << 20
	c := New(cfg)
	// Something holds nearly all of the memory until every worker waits for a
	// reserve, those with nothing to read first.
	hog, held := c.memory.Account(), cfg.FoldMemory*9/10-cfg.FoldMemory/16-4096
	require.True(t, hog.Take(held))
	for p := range 6 {
		r := w.workerOf(c, p)
		eventually(t, "it reads", func() bool { return !r.caughtUp.Load() && r.line().State == StateRunning })
		time.Sleep(100 * time.Millisecond)
	}
	hog.Release(held)
	w.reaches(0, 1, 2, 3, 4, 5)
	eventually(t, "nobody keeps a reserve", func() bool { return c.memory.Used() < c.memory.Reserve() })
}
