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

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ledger"
)

// linesOf are the lines that are written of a worker, as they come.
type linesOf struct {
	Standings

	mu   sync.Mutex
	all  []Line
	has  string // what is there now
	ends string // the ledger
	err  error
	logs *observer.ObservedLogs // warnings of who writes them
}

func (s *linesOf) Report(_ context.Context, _ string, _ int, text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return "", s.err
	}
	var l Line
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return "", err
	}
	s.all = append(s.all, l)
	was := s.has
	s.has = `{"written":1,` + text[1:]
	return was, nil
}

// State is the ledger and the line, where there are any.
func (s *linesOf) State(context.Context) (ledger.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := ledger.State{Ledger: map[string]string{}, Workers: map[string]string{}}
	if s.ends != "" {
		st.Ledger["points/0"] = s.ends
	}
	if s.has != "" {
		st.Workers["points/0"] = s.has
	}
	return st, nil
}

func (*linesOf) CheckSchema(string) error { return nil }

// holds has Redis hold a position and a line.
func (s *linesOf) holds(position, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends, s.has = position, line
}

// reporting runs what writes lines for a worker, in a bubble, which has written one.
func reporting(t *testing.T, do func(t *testing.T, w *worker, s *linesOf)) {
	t.Helper()
	fromItsStart(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		time.Sleep(reportPause)
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		require.Equal(t, Line{Owner: "o", Group: "g", State: StateRunning, At: s.lines()[0].At}, s.lines()[0])
		do(t, w, s)
	})
}

// fromItsStart runs what writes lines for a worker, in a bubble.
func fromItsStart(t *testing.T, do func(t *testing.T, w *worker, s *linesOf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &linesOf{}
		core, logs := observer.New(zap.WarnLevel)
		s.logs = logs
		c := &Consumer{Config: Config{Standings: s, Log: zap.New(core), Group: "g", Owner: "o"}, shared: shared{changed: make(chan struct{}, 1), states: newStates(s.State)}}
		w := &worker{
			Config: &c.Config, shared: &c.shared, topic: "points", field: "points/0", lag: noLag(), log: zap.NewNop(),
			kafka: &broker{client: &kafka.Client{Addr: kafka.TCP("none:1"), Transport: newLogs()}, timeout: time.Second},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.report(ctx, []*worker{w}) }()
		synctest.Wait()
		do(t, w, s)
		cancel()
		<-ended
	})
}

// locates has a worker look at what Redis has, and no further: there is no Kafka.
func locates(t *testing.T, w *worker) {
	t.Helper()
	_, err := w.locate(t.Context())
	require.Error(t, err)
	synctest.Wait()
}

func TestALineIsWrittenAtOnceWhereAPartitionBegins(t *testing.T) {
	fromItsStart(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		require.Empty(t, s.lines())
		w.started(ledger.At(0))
		synctest.Wait() // no time passes
		require.Len(t, s.lines(), 1)
		require.Equal(t, StateRunning, s.last().State)
		for range 50 { // a flow that ends and begins on the same ledger is no news
			time.Sleep(100 * time.Millisecond)
			s.holds("0", s.has)
			locates(t, w)
			w.started(ledger.At(0))
		}
		require.Len(t, s.lines(), 1)
	})
}

// After Redis was wiped boards would otherwise be said to have no worker until the next line.
func TestALineThatRedisHasLostIsWrittenAgainAtOnce(t *testing.T) {
	fromItsStart(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		s.holds("0", "")
		locates(t, w)
		w.started(ledger.At(0))
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		time.Sleep(3 * time.Second)
		s.holds("", "") // wiped
		locates(t, w)
		require.Len(t, s.lines(), 2, "no time has passed")
		s.holds("0", s.has)
		time.Sleep(100 * time.Millisecond)
		w.started(ledger.At(0))
		time.Sleep(reportPause)
		synctest.Wait()
		require.Len(t, s.lines(), 3, "what was begun again has a line of its own: how far it is behind is another")
		time.Sleep(3 * time.Second)
		s.holds("0", `{"owner":"o","state":"halted"}`) // Redis went back, and has an older line
		locates(t, w)
		require.Len(t, s.lines(), 4)
		require.Equal(t, StateRunning, s.last().State)
	})
}

// A halted one has no flow that would begin.
func TestALineOfAHaltThatRedisHasLostIsWrittenAgainAtOnce(t *testing.T) {
	fromItsStart(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		halt := &Halt{HaltGap, "what", "remedy"}
		w.halted(halt)
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		time.Sleep(3 * time.Second)
		s.holds("", "")
		locates(t, w)
		w.halted(halt)
		synctest.Wait()
		require.Len(t, s.lines(), 2)
		require.Equal(t, HaltGap, s.last().Reason)
	})
}

// Only the ticker would show it otherwise.
func TestALineIsWrittenAtOnceWhereAWaitIsOver(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		w.writing(&Waiting{WaitsRedisFull, errors.New("full"), "make room"})
		time.Sleep(4*reportPause + reportPause/3)
		synctest.Wait()
		require.Len(t, s.lines(), 2)
		require.Equal(t, StateWaiting, s.last().State)
		w.writing(nil)
		synctest.Wait() // no time passes
		require.Equal(t, StateRunning, s.last().State)
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

func TestASecondGroupThatWritesIsLoggedOnceAMinute(t *testing.T) {
	reporting(t, func(t *testing.T, _ *worker, s *linesOf) {
		t.Helper()
		for range 18 { // three minutes: the other writes between any two of ours
			s.holds("0", `{"written":1,"owner":"theirs:1","state":"running","group":"theirs"}`)
			time.Sleep(reportEvery)
		}
		synctest.Wait()
		all := s.logs.FilterMessageSnippet("another group counts under this prefix").All()
		require.Len(t, all, 3)
		require.Equal(t, map[string]any{
			"group": "g", "other_group": "theirs", "other_owner": "theirs:1", "partition": "points/0",
			"remedy": "unless this group has just been renamed, stop one of the two, or give it a redis.prefix of its own",
		}, all[0].ContextMap())
	})
}

func TestWhatARebalanceOrARenameLeavesIsNoSecondGroup(t *testing.T) {
	reporting(t, func(t *testing.T, _ *worker, s *linesOf) {
		t.Helper()
		for _, line := range []string{
			`{"owner":"theirs:1","group":"before"}`, "", "", "", // renamed
			`{"owner":"theirs:2","group":"g"}`, `{"owner":"theirs:1","group":"g"}`, // dealt out anew
			`{"owner":"theirs:1"}`, `{"owner":"theirs:1"}`, "nonsense", "nonsense", // of another version
			`{"owner":"theirs:1","group":"before"}`, "", "", "", // a backup was restored
		} {
			if line != "" {
				s.holds("0", line)
			}
			time.Sleep(reportEvery)
		}
		synctest.Wait()
		require.Empty(t, s.logs.All())
	})
}
