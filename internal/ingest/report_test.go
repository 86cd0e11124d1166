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
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// linesOf are the lines that are written of a worker, as they come.
type linesOf struct {
	Standings

	mu   sync.Mutex
	all  []health.Line
	has  string // what is there now
	ends string // the ledger
	err  error
	logs *observer.ObservedLogs // warnings of who writes them
}

func (s *linesOf) Report(_ context.Context, _ ledger.Partition, text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return "", s.err
	}
	var l health.Line
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
		time.Sleep(health.ReportPause)
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		require.Equal(t, health.Line{Owner: "o", Group: "g", State: health.StateRunning, At: s.lines()[0].At}, s.lines()[0])
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
		c := New(Config{Standings: []Standings{s}, Log: zap.New(core), Group: "g", Owner: "o", FoldMemory: 32 << 20, Timeout: time.Second, Brokers: []string{"none:1"}, Transport: newLogs(), Stats: new(Stats)})
		w := c.worker("points", 0, newCommits(nil, zap.NewNop()))
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
	_, err := w.locator.locate(t.Context())
	require.Error(t, err)
	synctest.Wait()
}

func TestALineIsWrittenAtOnceWhereAPartitionBegins(t *testing.T) {
	fromItsStart(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		require.Empty(t, s.lines())
		w.status.Started(ledger.At(0))
		synctest.Wait() // no time passes
		require.Len(t, s.lines(), 1)
		require.Equal(t, health.StateRunning, s.last().State)
		for range 50 { // a flow that ends and begins on the same ledger is no news
			time.Sleep(100 * time.Millisecond)
			s.holds("0", s.has)
			locates(t, w)
			w.status.Started(ledger.At(0))
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
		w.status.Started(ledger.At(0))
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		time.Sleep(3 * time.Second)
		s.holds("", "") // wiped
		locates(t, w)
		require.Len(t, s.lines(), 2, "no time has passed")
		s.holds("0", s.has)
		time.Sleep(100 * time.Millisecond)
		w.status.Started(ledger.At(0))
		time.Sleep(health.ReportPause)
		synctest.Wait()
		require.Len(t, s.lines(), 3, "what was begun again has a line of its own: how far it is behind is another")
		time.Sleep(3 * time.Second)
		s.holds("0", `{"owner":"o","state":"halted"}`) // Redis went back, and has an older line
		locates(t, w)
		require.Len(t, s.lines(), 4)
		require.Equal(t, health.StateRunning, s.last().State)
	})
}

// A halted one has no flow that would begin.
func TestALineOfAHaltThatRedisHasLostIsWrittenAgainAtOnce(t *testing.T) {
	fromItsStart(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		halt := &health.Halt{Reason: health.HaltGap, What: "what", Remedy: "remedy"}
		w.status.Halted(halt)
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		time.Sleep(3 * time.Second)
		s.holds("", "")
		locates(t, w)
		w.status.Halted(halt)
		synctest.Wait()
		require.Len(t, s.lines(), 2)
		require.Equal(t, health.HaltGap, s.last().Reason)
	})
}

// Only the ticker would show it otherwise.
func TestALineIsWrittenAtOnceWhereAWaitIsOver(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		w.status.Writing(&health.Waiting{Reason: health.WaitsRedisFull, Err: errors.New("full"), Remedy: "make room"})
		time.Sleep(4*health.ReportPause + health.ReportPause/3)
		synctest.Wait()
		require.Len(t, s.lines(), 2)
		require.Equal(t, health.StateWaiting, s.last().State)
		w.status.Writing(nil)
		synctest.Wait() // no time passes
		require.Equal(t, health.StateRunning, s.last().State)
	})
}

func (s *linesOf) lines() []health.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *linesOf) last() health.Line {
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
	halt := &health.Halt{Reason: health.HaltGap, What: "what", Remedy: "remedy"}
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		time.Sleep(3 * time.Second)
		w.status.Halted(halt)
		synctest.Wait() // no time passes
		require.Len(t, s.lines(), 2)
		require.Equal(t, health.HaltGap, s.last().Reason)
		time.Sleep(3 * time.Second)
		w.status.Halted(halt)
		synctest.Wait()
		require.Len(t, s.lines(), 2, "it is as it was")
		w.status.Swept(0, true)
		synctest.Wait()
		require.Len(t, s.lines(), 3)
		require.Equal(t, health.StateRunning, s.last().State)
		time.Sleep(health.ReportEvery)
		synctest.Wait()
		require.Len(t, s.lines(), 4, "and now and then")
	})
}

func TestAStormOfStatesIsALineASecondAndTheLastIsWritten(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		for range 500 {
			w.status.Halted(&health.Halt{Reason: health.HaltGap, What: "what", Remedy: "remedy"})
			time.Sleep(5 * time.Millisecond)
			w.status.Swept(0, true)
			time.Sleep(5 * time.Millisecond)
		}
		require.LessOrEqual(t, len(s.lines()), 7)
		w.status.Halted(&health.Halt{Reason: health.HaltTorn, What: "what", Remedy: "remedy"})
		time.Sleep(health.ReportPause + health.ReportPause/10)
		synctest.Wait()
		require.Equal(t, health.HaltTorn, s.last().Reason)
	})
}

func TestOnlyAWaitThatLastsIsALine(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		for range 3 {
			w.status.Writing(errors.New("away"))
			time.Sleep(health.ReportPause / 2)
			w.status.Writing(nil)
			time.Sleep(health.ReportPause)
		}
		require.Len(t, s.lines(), 1)
		w.status.Writing(&health.Waiting{Reason: health.WaitsRedisFull, Err: errors.New("full"), Remedy: "make room"})
		time.Sleep(2*health.ReportPause + health.ReportPause/10)
		synctest.Wait()
		require.Len(t, s.lines(), 2)
		require.Equal(t, health.WaitsRedisFull, s.last().Reason)
		w.status.Writing(nil)
		time.Sleep(health.ReportPause + health.ReportPause/10)
		synctest.Wait()
		require.Equal(t, health.StateRunning, s.last().State)
	})
}

func TestALineThatCouldNotBeWrittenIsWrittenAPauseLater(t *testing.T) {
	reporting(t, func(t *testing.T, w *worker, s *linesOf) {
		t.Helper()
		s.fails(errors.New("away"))
		w.status.Halted(&health.Halt{Reason: health.HaltGap, What: "what", Remedy: "remedy"})
		time.Sleep(5 * time.Second)
		require.Len(t, s.lines(), 1)
		s.fails(nil)
		time.Sleep(health.ReportPause + health.ReportPause/10)
		synctest.Wait()
		require.Equal(t, health.HaltGap, s.last().Reason)
	})
}

func TestASecondGroupThatWritesIsLoggedOnceAMinute(t *testing.T) {
	reporting(t, func(t *testing.T, _ *worker, s *linesOf) {
		t.Helper()
		for range 18 { // three minutes: the other writes between any two of ours
			s.holds("0", `{"written":1,"owner":"theirs:1","state":"running","group":"theirs"}`)
			time.Sleep(health.ReportEvery)
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
			time.Sleep(health.ReportEvery)
		}
		synctest.Wait()
		require.Empty(t, s.logs.All())
	})
}
