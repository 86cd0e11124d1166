package ingest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
)

// fetches controls every fetch of the topic by answer, which gets the fetch's number and request: it returns a
// throttle time (KIP-219), an error, which closes the connection, or neither.
func (w *world) fetches(answer func(n int, q *kmsg.FetchRequest) (time.Duration, error)) {
	w.t.Helper()
	n := 0
	w.cluster.ControlKey(int16(kmsg.Fetch), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		q := k.(*kmsg.FetchRequest)
		if len(q.Topics) != 1 || q.Topics[0].Topic != topic {
			return nil, nil, false
		}
		wait, err := answer(n, q)
		n++
		resp := q.ResponseKind().(*kmsg.FetchResponse)
		resp.ThrottleMillis = int32(wait.Milliseconds())
		return resp, err, err != nil || wait > 0
	})
}

// sendMany sends events in batches; a fetch returns one batch.
func (w *world) sendMany(prefix string, batches int) {
	for i := range batches {
		w.send(0, some(prefix+strings.Repeat("x", 100)+strconv.Itoa(i)+"-", 400, 1)...)
	}
}

func TestAThrottledPartitionRunsAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sendMany("a", 10)
	w.fetches(func(n int, _ *kmsg.FetchRequest) (time.Duration, error) {
		return time.Duration(n%3) * 40 * time.Millisecond, nil // two of three are throttled
	})
	r := w.worker(0, func(c *Config) { c.FetchBytes = 16 << 10 })
	w.reaches(0)
	require.Equal(t, kafkaconn.ClientID, r.locator.Resolver.Fetcher().ClientID, "by which quotas are set")
	l := r.status.Line()
	require.Equal(t, workers.StateRunning, l.State)
	require.Equal(t, health.WaitsThrottled, l.Reason)
	require.Contains(t, l.What, "quota")
	require.Contains(t, l.Remedy, "consumer_byte_rate")
	require.GreaterOrEqual(t, w.stats.Throttled.Load(), int64(120*time.Millisecond))
	require.Zero(t, w.stats.KafkaTries.Load(), "it is no error")
	w.said(0, "waiting, and trying again")
	w.said(1, "slows the partition down")
	w.said(0, "partition halted")
	w.said(1, "partition running")
}

func TestAPartitionThatGetsNothingButThrottlesWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, logs := quiet()
		r, script := scripted(w)
		script.answers = func(n int) answer { return answer{throttle: 9 * time.Second} }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := r.source.Fetch(ctx, 5)
			ended <- err
		}()
		time.Sleep(30 * time.Second)
		require.Equal(t, workers.StateRunning, w.status.Line().State)
		require.Equal(t, health.WaitsThrottled, w.status.Line().Reason)
		time.Sleep(time.Minute)
		l := w.status.Line()
		require.Equal(t, workers.StateWaiting, l.State)
		require.Equal(t, health.WaitsThrottled, l.Reason)
		require.Contains(t, l.What, "nothing since")
		require.Contains(t, l.Remedy, "largest record batch")
		require.Less(t, logs.FilterMessageSnippet("waiting").Len(), 6)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		script.answers = func(int) answer { return answer{} }
		_, err := r.source.Fetch(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, workers.StateRunning, w.status.Line().State)
		time.Sleep(health.ThrottleShown + 20*time.Second)
		require.Equal(t, health.WaitsTransaction, w.status.Line().Reason, "after a while it isn't throttled any more; the log has an open transaction")
	})
}

// Other partitions wait for a rereading outside of the budget.
func TestAReadingWithATokenWaitsForNoQuotaForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := quiet()
		r, script := scripted(w)
		script.answers = func(int) answer { return answer{throttle: 9 * time.Second} }
		r.source.Hurried = true
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errGenerationEnded)
		defer cancel()
		began := time.Now()
		_, err := r.source.Fetch(ctx, 5)
		require.ErrorAs(t, err, new(*health.Waiting))
		reason, _ := health.ClassifyWait(err)
		require.Equal(t, health.WaitsThrottled, reason)
		require.InDelta(t, 60, time.Since(began).Seconds(), 10)
	})
}

// A log's end is confirmed only if a leader keeps answering that there are no more records.
func TestThrottledAnswersAndErrorsAreNoEndOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		answers   func(n int, since time.Duration) answer
		confirmed bool
	}{
		"empty for 12 s": {func(int, time.Duration) answer { return answer{} }, true},
		"throttled":      {func(int, time.Duration) answer { return answer{throttle: 7 * time.Second} }, false},
		"empty, throttled, empty": {func(n int, _ time.Duration) answer {
			return answer{throttle: time.Duration(n%2) * 13 * time.Second}
		}, false},
		"throttled, then empty": {func(_ int, since time.Duration) answer {
			if since < 30*time.Second {
				return answer{throttle: 13 * time.Second}
			}
			if since < 38*time.Second {
				return answer{}
			}
			return answer{throttle: time.Minute}
		}, false},
		"an error, and another leader": {func(_ int, since time.Duration) answer {
			if int(since.Seconds())%8 == 0 {
				return answer{err: errLost}
			}
			return answer{}
		}, false},
		"throttled in between": {func(n int, _ time.Duration) answer {
			if n%8 == 0 {
				return answer{throttle: 2 * time.Second}
			}
			return answer{}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := quiet()
				r, script := scripted(w)
				began := time.Now()
				script.answers = func(n int) answer { return c.answers(n, time.Since(began)) }
				over := errors.New("the generation is over")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, over)
				defer cancel()
				require.NoError(t, r.begin(ledger.Positions{{From: 5, To: 9, Hash: 1}}))
				err := r.reread(ctx, aBatch(t, memory.New(1000, 900).Account()))
				if c.confirmed {
					require.ErrorIs(t, err, locate.ErrAgain)
					require.Greater(t, time.Since(began), start.ConfirmFor)
				} else {
					require.ErrorIs(t, err, over)
				}
			})
		})
	}
}

// Otherwise a takeover whose sweep doesn't fit without a turn would start it again and again without one.
func TestATurnIsWaitedForAgainAfterAThrottledAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := quiet()
		budget := memory.New(1<<20, 900<<10)
		w.pipeline.Budget = budget
		r, script := scripted(w)
		r.turn.Account = budget.Account()
		r.turn.Drain = func(context.Context) error { return nil }
		var taken []bool // at each request to the broker
		script.answers = func(n int) answer {
			taken = append(taken, r.turn.Taken)
			return answer{throttle: time.Duration(1-min(n, 1)) * 5 * time.Second}
		}
		require.NoError(t, r.turn.Wait(t.Context()))
		_, err := r.source.Fetch(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, []bool{true, true}, taken)
	})
}

// aBatch returns an empty batch.
func aBatch(t *testing.T, m fold.Memory) *batch {
	t.Helper()
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	return &batch{Batch: fold.New(new(fold.BuiltIn(calendar, time.Hour.Milliseconds(), periods.Weekly)), m, 800<<10)}
}

// No reader holds memory for long while it waits: if other partitions want memory, it goes to them, soon in an
// outage and much later under a quota, since under a quota the batch would have to be read again.
func TestWhatIsHeldInAnOutageGoesToOthersWhoWaitForIt(t *testing.T) {
	for name, c := range map[string]struct {
		answer  answer
		holds   bool // a batch; else only a turn
		wanted  bool
		patient time.Duration // 0: never gives it up
	}{
		"an outage":                 {answer{err: errLost}, true, true, source.OutagePatience},
		"an outage, nobody waits":   {answer{err: errLost}, true, false, 0},
		"a quota":                   {answer{throttle: 9 * time.Second}, true, true, 5 * time.Minute},
		"a quota, and nobody waits": {answer{throttle: 9 * time.Second}, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := quiet()
				budget := memory.New(1<<20, 900<<10)
				account := budget.Account()
				w.pipeline.Budget = budget
				r, script := scripted(w)
				r.turn.Account = account
				script.answers = func(int) answer { return c.answer }
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errGenerationEnded)
				defer cancel()
				require.NoError(t, account.Wait(ctx, nil))
				r.turn.Taken = true
				if c.holds {
					r.sweep = aBatch(t, account)
					reset(r.sweep.Batch, ledger.Position{From: 5, To: 9, Hash: 1})
					added, err := r.sweep.Add(&fold.Event{Offset: 5, User: []byte("a"), Hash: 7, Boards: [][]byte{[]byte("global")}, Points: 5, Time: 1, RecordTime: 1})
					require.Equal(t, fold.Added, added)
					require.NoError(t, err)
				}
				served := make(chan error, 1)
				if c.wanted {
					go func() { served <- budget.Account().Wait(ctx, nil) }()
					synctest.Wait()
				}
				began := time.Now()
				_, err := r.source.Fetch(ctx, 5)
				if c.patient == 0 {
					require.ErrorIs(t, err, errGenerationEnded)
					return
				}
				require.ErrorIs(t, err, source.ErrNoMemory)
				require.InDelta(t, c.patient.Seconds(), time.Since(began).Seconds(), 11)
				require.GreaterOrEqual(t, time.Since(began), c.patient)
				require.False(t, r.turn.Taken, "its turn is over")
				r.sweep.Release()
				require.NoError(t, <-served)
			})
		})
	}
}
