package report

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
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
)

// linesOf records the lines that are written for a worker.
type linesOf struct {
	shards.Standings

	mu   sync.Mutex
	all  []workers.Line
	has  string // the currently stored line
	err  error
	logs *observer.ObservedLogs // warnings of the consumer that writes the lines
}

func (s *linesOf) Report(_ context.Context, lines []ledger.Line) (stored, before []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	var l workers.Line
	if err := json.Unmarshal([]byte(lines[0].Text), &l); err != nil {
		return nil, nil, err
	}
	s.all = append(s.all, l)
	was := s.has
	s.has = `{"written":1,` + lines[0].Text[1:]
	return []string{s.has}, []string{was}, nil
}

func (s *linesOf) Retract(_ context.Context, stored []ledger.Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has == stored[0].Text {
		s.has = ""
	}
	return nil
}

// held returns the line that Redis holds.
func (s *linesOf) held() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has
}

// holds sets the line that Redis holds.
func (s *linesOf) holds(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has = line
}

// reporting runs a consumer's report for a worker in a bubble, calls do after the first line, and then ends the
// worker.
func reporting(t *testing.T, do func(t *testing.T, status *health.Status, s *linesOf)) (after *linesOf) {
	t.Helper()
	s := &linesOf{}
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		s.logs = logs
		r := &Reporter{Standings: s, Group: "g", Log: zap.New(core)}
		status := health.NewStatus(zap.NewNop(), "o", "g", health.NewLagTracker())
		w := Worker{Partition: ledger.Partition{Topic: "points"}, Status: status}
		status.Waiting(nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx, []Worker{w}, new(sync.WaitGroup)) }()
		synctest.Wait()
		require.Len(t, s.lines(), 1)
		require.Equal(t, workers.Line{Owner: "o", Group: "g", State: workers.StateRunning, At: s.lines()[0].At}, s.lines()[0])
		do(t, status, s)
		cancel()
		<-ended
	})
	return s
}

func TestALineIsWrittenEverySecondAndTakenBackAtTheEnd(t *testing.T) {
	s := reporting(t, func(t *testing.T, status *health.Status, s *linesOf) {
		t.Helper()
		time.Sleep(5*workers.ReportEvery + workers.ReportEvery/2)
		require.Len(t, s.lines(), 6)
		status.Halted(&health.Halt{Reason: health.HaltGap, What: "what", Remedy: "remedy"})
		time.Sleep(workers.ReportEvery)
		require.Equal(t, health.HaltGap, s.last().Reason)
		s.holds("") // Redis was wiped
		time.Sleep(workers.ReportEvery)
		require.Contains(t, s.held(), health.HaltGap)
	})
	require.Empty(t, s.held())
}

func TestALineOfTheNextOwnerIsNotTakenBack(t *testing.T) {
	const theirs = `{"written":1,"owner":"another","group":"g"}`
	s := reporting(t, func(t *testing.T, _ *health.Status, s *linesOf) {
		t.Helper()
		s.holds(theirs)
	})
	require.JSONEq(t, theirs, s.held())
}

func (s *linesOf) lines() []workers.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *linesOf) last() workers.Line {
	all := s.lines()
	return all[len(all)-1]
}

func TestOnlyAWaitThatLastsIsReported(t *testing.T) {
	reporting(t, func(t *testing.T, status *health.Status, s *linesOf) {
		t.Helper()
		time.Sleep(workers.ReportEvery / 2)
		status.Writing(&health.Waiting{Reason: health.WaitsRedisFull, Err: errors.New("full"), Remedy: "make room"})
		time.Sleep(workers.ReportEvery)
		require.Equal(t, workers.StateRunning, s.last().State)
		require.Empty(t, s.last().Reason)
		time.Sleep(workers.ReportEvery)
		require.Equal(t, health.WaitsRedisFull, s.last().Reason)
		status.Writing(nil)
		time.Sleep(workers.ReportEvery)
		require.Equal(t, workers.StateRunning, s.last().State)
	})
}

func TestASecondGroupThatWritesIsLoggedOnceAMinute(t *testing.T) {
	reporting(t, func(t *testing.T, _ *health.Status, s *linesOf) {
		t.Helper()
		for range 180 { // three minutes: the other group writes between any two lines of this one
			s.holds(`{"written":1,"owner":"theirs:1","state":"running","group":"theirs"}`)
			time.Sleep(workers.ReportEvery)
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
	reporting(t, func(t *testing.T, _ *health.Status, s *linesOf) {
		t.Helper()
		for _, line := range []string{
			`{"owner":"theirs:1","group":"before"}`, "", "", "", // renamed
			`{"owner":"theirs:2","group":"g"}`, `{"owner":"theirs:1","group":"g"}`, // a rebalance
			`{"owner":"theirs:1"}`, `{"owner":"theirs:1"}`, "nonsense", "nonsense", // of another version
			`{"owner":"theirs:1","group":"before"}`, "", "", "", // a backup was restored
		} {
			if line != "" {
				s.holds(line)
			}
			time.Sleep(workers.ReportEvery)
		}
		synctest.Wait()
		require.Empty(t, s.logs.All())
	})
}
