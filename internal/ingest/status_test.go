package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ledger"
)

func quiet() (*worker, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return &worker{Config: &Config{Owner: "me"}, shared: &shared{}, log: zap.New(core)}, logs
}

func TestAWaitIsToldNowAndThenAndItsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, logs := quiet()
		w.started(ledger.At(0))
		for range 600 { // a minute
			w.writing(errLost)
			time.Sleep(100 * time.Millisecond)
		}
		require.InDelta(t, 12, logs.FilterMessageSnippet("waiting").Len(), 1)
		require.Equal(t, StateWaiting, w.line().State)
		require.Contains(t, w.line().What, "reset")
		require.Equal(t, WaitsKafka, w.line().Reason)
		require.NotEmpty(t, w.line().Remedy)
		w.writing(nil)
		w.writing(nil)
		require.Equal(t, 1, logs.FilterMessageSnippet("going on").Len())
		require.Equal(t, StateRunning, w.line().State)
	})
}

func TestOneSideThatGoesOnDoesNotHideThatTheOtherWaits(t *testing.T) {
	w, _ := quiet()
	w.writing(errLost)
	w.reading(errors.New("broker"))
	w.reading(nil)
	require.Equal(t, StateWaiting, w.line().State)
	w.writing(nil)
	require.Equal(t, StateRunning, w.line().State)
}

func TestALineHasTheReasonOfAWait(t *testing.T) {
	w, _ := quiet()
	for reason, err := range map[string]error{
		WaitsKafka:     errors.New("connection refused"),
		WaitsRedis:     mark(errors.New("connection refused")),
		WaitsRebuild:   errHeld,
		WaitsRedisFull: mark(fmt.Errorf("apply points/0: %w", &ledger.FullError{Used: 61_000_000, Max: 60_000_000, Err: errors.New("OOM command not allowed")})),
		WaitsMemory:    fmt.Errorf("points/0: %w", mark(&Waiting{WaitsMemory, errors.New("none is left"), "raise it"})),
	} {
		w.writing(err)
		l := w.line()
		require.Equal(t, StateWaiting, l.State)
		require.Equal(t, reason, l.Reason)
		require.Equal(t, err.Error(), l.What)
		require.NotEmpty(t, l.Remedy)
		require.Contains(t, WaitReasons(), l.Reason)
		if reason == WaitsRedisFull {
			require.Contains(t, l.Remedy, "maxmemory (61000000 of 60000000 bytes are used)")
		}
	}
	w.halted(&Halt{HaltGap, "gone", "rebuild"})
	require.Equal(t, HaltGap, w.line().Reason, "a halt goes before")
	w.swept(0)
	w.writing(nil)
	require.Empty(t, w.line().Reason)
	require.Empty(t, w.line().Remedy)
}

func TestAHaltIsToldOnceAndOverOnceABatchIsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, logs := quiet()
		for range 60 {
			w.halted(&Halt{HaltBoard, "gone", "rebuild"})
			time.Sleep(time.Second)
			w.started(ledger.At(0)) // reads on its way to what halted it
			time.Sleep(3 * time.Second)
			w.looked()
			require.Equal(t, StateHalted, w.line().State)
		}
		require.Equal(t, 1, logs.FilterMessage("partition halted").Len())
		w.halted(&Halt{HaltForeign, "another", "rebuild"})
		require.Equal(t, 2, logs.FilterMessage("partition halted").Len(), "another reason is told")
		w.swept(0)
		require.Equal(t, StateRunning, w.line().State)
		require.Equal(t, 1, logs.FilterMessageSnippet("goes on").Len())
	})
}

func TestAHaltIsOverWhereNothingIsLeftToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := quiet()
		w.halted(&Halt{HaltRedis, "NOPERM", "mend"})
		w.started(ledger.At(0))
		w.caughtUp.Store(true)
		w.looked()
		require.Equal(t, StateHalted, w.line().State, "not at the first look")
		time.Sleep(3 * time.Second)
		w.looked()
		require.Equal(t, StateRunning, w.line().State)
	})
}

func TestALineIsReadAsItWasWritten(t *testing.T) {
	w, _ := quiet()
	w.swept(1700000000123)
	w.halted(&Halt{HaltGap, "what \"is\"", "do"})
	var l Line
	require.NoError(t, json.Unmarshal([]byte(w.line().text()), &l))
	require.Equal(t, "me", l.Owner)
	require.Equal(t, HaltGap, l.Reason)
	require.Equal(t, int64(1700000000123), l.RecordTime.UnixMilli())
}

func TestALookAtAHaltThatTakesLongIsNotTakenAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := quiet()
		w.Standings = newFake()
		pause := func(took time.Duration) time.Duration {
			began := time.Now()
			require.True(t, w.settle(t.Context(), &Halt{HaltBoard, "gone", "rebuild"}, newWait(), took))
			return time.Since(began)
		}
		require.Equal(t, time.Second, pause(time.Hour), "it worked for an hour, and halted")
		require.Equal(t, time.Second, pause(20*time.Millisecond))
		require.Equal(t, 4*time.Second, pause(4*time.Second), "a sweep is read again")
		require.Equal(t, 10*time.Second, pause(time.Minute))
	})
}
