package health

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
	"github.com/standings/standings/internal/ledger/workers"
)

func quietStatus() (*Status, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return NewStatus(zap.New(core), "me", "", &LagTracker{}), logs
}

var errGone = errors.New("connection reset")

func TestAWaitIsToldNowAndThenAndItsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, logs := quietStatus()
		s.Started(ledger.At(0))
		for range 600 { // a minute
			s.Writing(errGone)
			time.Sleep(100 * time.Millisecond)
		}
		require.InDelta(t, 12, logs.FilterMessageSnippet("waiting").Len(), 1)
		require.Equal(t, workers.StateWaiting, s.Line().State)
		require.Contains(t, s.Line().What, "reset")
		require.Equal(t, WaitsKafka, s.Line().Reason)
		require.NotEmpty(t, s.Line().Remedy)
		s.Writing(nil)
		s.Writing(nil)
		require.Equal(t, 1, logs.FilterMessageSnippet("going on").Len())
		require.Equal(t, workers.StateRunning, s.Line().State)
	})
}

func TestOneSideThatGoesOnDoesNotHideThatTheOtherWaits(t *testing.T) {
	s, _ := quietStatus()
	s.Writing(errGone)
	s.Reading(errors.New("broker"))
	s.Reading(nil)
	require.Equal(t, workers.StateWaiting, s.Line().State)
	s.Writing(nil)
	require.Equal(t, workers.StateRunning, s.Line().State)
}

func TestALineHasTheReasonOfAWait(t *testing.T) {
	s, _ := quietStatus()
	for reason, err := range map[string]error{
		WaitsKafka:     errors.New("connection refused"),
		WaitsRedis:     StandingsError(0, errors.New("connection refused")),
		WaitsRebuild:   &Waiting{WaitsRebuild, errors.New("held"), "none is needed"},
		WaitsRedisFull: StandingsError(0, fmt.Errorf("apply points/0: %w", &ledger.FullError{Used: 61_000_000, Max: 60_000_000, Err: errors.New("OOM command not allowed")})),
		WaitsMemory:    fmt.Errorf("points/0: %w", StandingsError(0, &Waiting{WaitsMemory, errors.New("none is left"), "raise it"})),
	} {
		s.Writing(err)
		l := s.Line()
		require.Equal(t, workers.StateWaiting, l.State)
		require.Equal(t, reason, l.Reason)
		require.Equal(t, err.Error(), l.What)
		require.NotEmpty(t, l.Remedy)
		require.Contains(t, WaitReasons(), l.Reason)
		if reason == WaitsRedisFull {
			require.Contains(t, l.Remedy, "maxmemory (61000000 of 60000000 bytes are used)")
		}
	}
	s.Halted(&Halt{HaltGap, "gone", "rebuild"})
	require.Equal(t, HaltGap, s.Line().Reason, "a halt goes before")
	s.Swept(0, true)
	s.Writing(nil)
	require.Empty(t, s.Line().Reason)
	require.Empty(t, s.Line().Remedy)
}

func TestAHaltIsToldOnceAndOverOnceABatchIsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, logs := quietStatus()
		for range 60 {
			s.Halted(&Halt{HaltBoard, "gone", "rebuild"})
			time.Sleep(time.Second)
			s.Started(ledger.At(0)) // reads towards the cause of the halt
			time.Sleep(3 * time.Second)
			s.Looked()
			s.Swept(0, false) // the shards that are not halted have counted it already
			require.Equal(t, workers.StateHalted, s.Line().State)
		}
		require.Equal(t, 1, logs.FilterMessage("partition halted").Len())
		s.Halted(&Halt{HaltForeign, "another", "rebuild"})
		require.Equal(t, 2, logs.FilterMessage("partition halted").Len(), "another reason is told")
		s.Swept(0, true)
		require.Equal(t, workers.StateRunning, s.Line().State)
		require.Equal(t, 1, logs.FilterMessageSnippet("goes on").Len())
	})
}

func TestAHaltIsOverWhereNothingIsLeftToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := quietStatus()
		s.Halted(&Halt{HaltRedis, "NOPERM", "mend"})
		s.Started(ledger.At(0))
		s.CaughtUp.Store(true)
		s.Looked()
		require.Equal(t, workers.StateHalted, s.Line().State, "not at the first look")
		time.Sleep(3 * time.Second)
		s.Looked()
		require.Equal(t, workers.StateRunning, s.Line().State)
	})
}

func TestALineIsReadAsItWasWritten(t *testing.T) {
	s, _ := quietStatus()
	s.Swept(1700000000123, true)
	s.Halted(&Halt{HaltGap, "what \"is\"", "do"})
	var l workers.Line
	require.NoError(t, json.Unmarshal([]byte(s.Line().Text()), &l))
	require.Equal(t, "me", l.Owner)
	require.Equal(t, HaltGap, l.Reason)
	require.Equal(t, int64(1700000000123), l.RecordTime.UnixMilli())
}
