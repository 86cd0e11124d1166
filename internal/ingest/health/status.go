package health

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/retry"
)

// Status is a worker's state. What goes on is logged now and then, not every time.
//
// Its reader and its sweeper note what they wait for, each on a side of its own; whoever
// shows it reads. mu guards all but the first fields, which don't change, and caughtUp.
type Status struct {
	log          *zap.Logger
	owner, group string
	lag          *LagTracker
	CaughtUp     atomic.Bool // the last answer of the broker was empty
	known        atomic.Pointer[duplicates.Set]

	mu     sync.Mutex
	begun  time.Time // the flow under way
	halt   *Halt
	wait   [4]error // what reading, writing and everything between them wait for, and what is looked through
	since  [4]time.Time
	shards []ShardWait    // that are waited for, on any side
	logged retry.LogLimit // that a wait goes on
	newest time.Time
	// When a broker last asked to be left alone, and for how long.
	throttledAt  time.Time
	throttledFor time.Duration

	beat time.Time // when sweeping, or what comes before it, last came round
}

// NewStatus is of a partition that nothing was noted of. What changes is logged.
func NewStatus(log *zap.Logger, owner, group string, l *LagTracker) *Status {
	return &Status{log: log, owner: owner, group: group, lag: l}
}

const (
	looksBack = iota // the others say more
	waitsRead
	waitsWrite
	waitsStart
)

// haltOver is how long a flow has to run with nothing to read until a halt before it is
// over: two looks at the ledger.
const haltOver = 2 * time.Second

// transactionLasts is how long a transaction has to be open until it is reported as a reason: most last milliseconds.
const transactionLasts = 5 * time.Second

const transactionRemedy = "end it: the producer commits or aborts it, or the broker does after the producer's transaction.timeout.ms; one that hangs is found and aborted by kafka-transactions.sh"

// WaitTold is how often a wait that goes on is logged.
const WaitTold = 5 * time.Second

// Started is called where a flow has found its positions.
func (s *Status) Started(at fmt.Stringer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.begun.IsZero()
	s.begun = time.Now()
	s.CaughtUp.Store(false)
	s.note(waitsStart, nil)
	if first {
		s.log.Info("partition running", zap.Stringer("position", at))
	}
}

// Reading notes what the reader waits for, nil once it goes on.
func (s *Status) Reading(err error) { s.waits(waitsRead, err) }

// Writing notes what the sweeper waits for, nil once it goes on.
func (s *Status) Writing(err error) { s.waits(waitsWrite, err) }

// Waiting notes what everything between flows waits for, nil once it goes on.
func (s *Status) Waiting(err error) { s.waits(waitsStart, err) }

// LooksBack notes that records before the position are read, for duplicates: with what is left,
// and nil once none is.
func (s *Status) LooksBack(left error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.wait[looksBack]
	switch {
	case left != nil:
		s.wait[looksBack] = &Waiting{Reason: WaitsDuplicates, Err: left, Remedy: "none is needed: it goes on by itself"}
		if before == nil {
			s.since[looksBack] = time.Now()
		}
	case before != nil:
		s.wait[looksBack] = nil
	}
}

// Remembers is called with what finds the partition's duplicates.
func (s *Status) Remembers(set *duplicates.Set) { s.known.Store(set) }

func (s *Status) waits(side int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(side, err)
}

func (s *Status) note(side int, err error) {
	if side != waitsRead { // a reader may rightly be held up, by memory for instance
		s.beat = time.Now()
	}
	before := s.wait[side]
	s.wait[side] = err
	if before == nil {
		s.since[side] = time.Now()
	}
	if before != nil || err != nil {
		s.noteShards()
	}
	switch {
	case err == nil && before != nil:
		s.log.Info("going on", zap.NamedError("after", before))
	case err != nil && s.logged.Due(WaitTold):
		reason, _ := ClassifyWait(err)
		s.log.Warn("waiting, and trying again", zap.String("reason", reason), zap.Error(err))
	}
}

// noteShards notes the shards that any side waits for, each since it has been waited for without
// a break.
func (s *Status) noteShards() {
	known := s.shards
	s.shards = nil
	for _, err := range s.wait {
		for _, w := range shardWaits(err) {
			same := func(other ShardWait) bool { return other.Shard == w.Shard }
			if slices.ContainsFunc(s.shards, same) {
				continue
			}
			w.Since = time.Now()
			if i := slices.IndexFunc(known, same); i >= 0 {
				w.Since = known[i].Since
			}
			s.shards = append(s.shards, w)
		}
	}
}

// Shards are the shards that the partition waits for, in no order.
func (s *Status) Shards() []ShardWait {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shards)
}

// Halted logs a halt, once, and reports whether it was logged before.
func (s *Status) Halted(h *Halt) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known = s.halt != nil && s.halt.Reason == h.Reason; !known {
		s.log.Error("partition halted", zap.String("reason", h.Reason), zap.String("what", h.What), zap.String("remedy", h.Remedy))
	}
	s.halt, s.beat = h, time.Now()
	return known
}

// Looked is called where the ledger stands as it should. A halt is over once a
// batch is through, or where there is nothing to read: a flow that is still on
// its way to what halted the one before has left nothing behind.
func (s *Status) Looked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(waitsWrite, nil)
	if time.Since(s.begun) > haltOver && s.CaughtUp.Load() {
		s.goOn()
	}
}

// Swept is called where a batch is through. One of which nothing had to be written, since the
// shards have what it has already, doesn't end a halt: what was halted at lies behind it.
func (s *Status) Swept(newest int64, wrote bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat = time.Now()
	if newest > 0 {
		s.newest = time.UnixMilli(newest).UTC()
	}
	if wrote {
		s.goOn()
	}
}

func (s *Status) goOn() {
	if s.halt != nil {
		s.log.Info("partition goes on: the cause of its halt is gone", zap.String("reason", s.halt.Reason))
		s.halt = nil
	}
}

// Line is the worker's line as of now.
func (s *Status) Line() workers.Line {
	l, _, _ := s.Shown()
	return l
}

// Shown is the line; since when the worker has waited, where it does; and when it last
// came round.
func (s *Status) Shown() (l workers.Line, since, beat time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l = workers.Line{Owner: s.owner, Group: s.group, State: workers.StateRunning, At: time.Now().UTC(), RecordTime: s.newest}
	if lag := s.lag.Lag(); lag.Known {
		l.Lag, l.Oldest, l.Unread, l.OpenTransaction = &lag.Records, lag.Since.UTC(), lag.Unread, lag.Open
	}
	for side, err := range s.wait {
		if err != nil {
			l.State, l.What = workers.StateWaiting, err.Error()
			l.Reason, l.Remedy = ClassifyWait(err)
			if since.IsZero() || s.since[side].Before(since) {
				since = s.since[side]
			}
		}
	}
	if l.State == workers.StateRunning && s.isThrottled() {
		l.Reason, l.What, l.Remedy = WaitsThrottled, throttleSlows, ThrottleRemedy
	}
	if t := l.OpenTransaction; t != nil && l.State == workers.StateRunning && time.Since(t.Since) >= transactionLasts {
		l.Reason, l.Remedy = WaitsTransaction, transactionRemedy
		l.What = fmt.Sprintf("a producer's transaction, open since %s, holds back the records from offset %d on", t.Since.Format(time.RFC3339), t.Offset)
	}
	if known := s.known.Load(); known != nil {
		l.Duplicates = known.Records()
		if oldest := known.Oldest(); oldest > 0 {
			l.DuplicatesSince = time.UnixMilli(oldest).UTC()
		}
	}
	if h := s.halt; h != nil {
		l.State, l.Reason, l.What, l.Remedy = workers.StateHalted, h.Reason, h.What, h.Remedy
	}
	return l, since, s.beat
}
