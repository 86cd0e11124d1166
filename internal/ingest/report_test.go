package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// linesOf are the lines that are written of a worker, as they come.
type linesOf struct {
	Standings

	mu  sync.Mutex
	all []Line
	err error
}

func (s *linesOf) Report(_ context.Context, _ string, _ int, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	var l Line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return err
	}
	s.all = append(s.all, l)
	return nil
}

// reporting runs what writes lines for a worker, in a bubble.
func reporting(t *testing.T, do func(t *testing.T, w *worker, s *linesOf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &linesOf{}
		c := &Consumer{Config: Config{Standings: s, Log: zap.NewNop(), Group: "g", Owner: "o"}, shared: shared{changed: make(chan struct{}, 1)}}
		w := &worker{Config: &c.Config, shared: &c.shared, topic: "points", lag: noLag(), log: zap.NewNop()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.report(ctx, []*worker{w}) }()
		time.Sleep(reportPause)
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		require.Equal(t, Line{Owner: "o", Group: "g", State: StateRunning, At: s.lines()[0].At}, s.lines()[0])
		do(t, w, s)
		cancel()
		<-ended
	})
}

func (s *linesOf) lines() []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *linesOf) last() Line {
	all := s.lines()
	return all[len(all)-1]
}

// fails has every report fail from here on, or none.
func (s *linesOf) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func TestALineIsWrittenAtOnceWhereAPartitionHaltsAndWhereItGoesOn(t *testing.T) {
	halt := &Halt{HaltGap, "what", "remedy"}
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		time.Sleep(3 * time.Second)
		w.halted(halt)
		synctest.Wait() // no time passes
		require.Len(t, s.lines(), 2)
		require.Equal(t, HaltGap, s.last().Reason)
		time.Sleep(3 * time.Second)
		w.halted(halt)
		synctest.Wait()
		require.Len(t, s.lines(), 2, "it is as it was")
		w.swept(0)
		synctest.Wait()
		require.Len(t, s.lines(), 3)
		require.Equal(t, StateRunning, s.last().State)
		time.Sleep(reportEvery)
		synctest.Wait()
		require.Len(t, s.lines(), 4, "and now and then")
	})
}

func TestAStormOfStatesIsALineASecondAndTheLastIsWritten(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		for range 500 {
			w.halted(&Halt{HaltGap, "what", "remedy"})
			time.Sleep(5 * time.Millisecond)
			w.swept(0)
			time.Sleep(5 * time.Millisecond)
		}
		require.LessOrEqual(t, len(s.lines()), 7)
		w.halted(&Halt{HaltTorn, "what", "remedy"})
		time.Sleep(reportPause + reportPause/10)
		synctest.Wait()
		require.Equal(t, HaltTorn, s.last().Reason)
	})
}

func TestOnlyAWaitThatLastsIsALine(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		for range 3 {
			w.writing(errors.New("away"))
			time.Sleep(reportPause / 2)
			w.writing(nil)
			time.Sleep(reportPause)
		}
		require.Len(t, s.lines(), 1)
		w.writing(&Waiting{WaitsRedisFull, errors.New("full"), "make room"})
		time.Sleep(2*reportPause + reportPause/10)
		synctest.Wait()
		require.Len(t, s.lines(), 2)
		require.Equal(t, WaitsRedisFull, s.last().Reason)
		w.writing(nil)
		time.Sleep(reportPause + reportPause/10)
		synctest.Wait()
		require.Equal(t, StateRunning, s.last().State)
	})
}

func TestALineThatCouldNotBeWrittenIsWrittenAPauseLater(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		s.fails(errors.New("away"))
		w.halted(&Halt{HaltGap, "what", "remedy"})
		time.Sleep(5 * time.Second)
		require.Len(t, s.lines(), 1)
		s.fails(nil)
		time.Sleep(reportPause + reportPause/10)
		synctest.Wait()
		require.Equal(t, HaltGap, s.last().Reason)
	})
}
