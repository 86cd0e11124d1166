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

// Status is a worker's state. It logs a lasting wait only from time to time.
//
// The reader and the sweeper each record their own waits. mu guards all fields except the first ones, which are
// immutable or atomic.
type Status struct {
	log          *zap.Logger
	owner, group string
	lag          *LagTracker
	CaughtUp     atomic.Bool // the broker's last answer was empty
	known        atomic.Pointer[duplicates.Set]

	mu    sync.Mutex
	begun time.Time // start of the current flow
	halt  *Halt
	sides
	newest time.Time
	// When a broker last throttled the partition, and for how long.
	throttledAt  time.Time
	throttledFor time.Duration

	beat time.Time // when sweeping, or the steps between flows, last made a round
}

// sides are what the sides of a worker wait for.
type sides struct {
	wait   [4]error // what looking back, reading, writing and the steps between flows wait for
	since  [4]time.Time
	shards []ShardWait    // shards that any side waits for
	logged retry.LogLimit // limits the log lines about a lasting wait
}

// NewStatus returns an empty Status. It logs changes.
func NewStatus(log *zap.Logger, owner, group string, l *LagTracker) *Status {
	return &Status{log: log, owner: owner, group: group, lag: l}
}

const (
	looksBack = iota // the others take precedence
	waitsRead
	waitsWrite
	waitsStart
)

// haltOver is how long a flow must run without records until a halt is over: two checks of the ledger.
const haltOver = 2 * time.Second

// transactionLasts is how long a transaction must be open until it is reported as a reason. Most transactions
// last milliseconds.
const transactionLasts = 5 * time.Second

const transactionRemedy = "end it: the producer commits or aborts it, or the broker does after the producer's transaction.timeout.ms; one that hangs is found and aborted by kafka-transactions.sh"

// WaitTold is the minimum interval between log lines about a lasting wait.
const WaitTold = 5 * time.Second

// Started records that a flow has found its positions.
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

// Reading records what the reader waits for, or nil once it continues.
func (s *Status) Reading(err error) { s.waits(waitsRead, err) }

// Writing records what the sweeper waits for, or nil once it continues.
func (s *Status) Writing(err error) { s.waits(waitsWrite, err) }

// Waiting records what the steps between flows wait for, or nil once they continue.
func (s *Status) Waiting(err error) { s.waits(waitsStart, err) }

// LooksBack records that records before the position are read, to find duplicates. left describes how many
// remain; nil: none.
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

// Remembers sets the partition's set of ids for finding duplicates.
func (s *Status) Remembers(set *duplicates.Set) { s.known.Store(set) }

func (s *Status) waits(side int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(side, err)
}

func (s *Status) note(side int, err error) {
	if side != waitsRead { // a reader may wait for good reasons, such as memory
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

// noteShards updates the shards that any side waits for, each with the start of the uninterrupted wait.
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

// Shards returns the shards that the partition waits for, in no particular order.
func (s *Status) Shards() []ShardWait {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shards)
}

// Halted records a halt, and logs it unless it is known. It reports whether it is known.
func (s *Status) Halted(h *Halt) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known = s.halt != nil && s.halt.Reason == h.Reason; !known {
		s.log.Error("partition halted", zap.String("reason", h.Reason), zap.String("what", h.What), zap.String("remedy", h.Remedy))
	}
	s.halt, s.beat = h, time.Now()
	return known
}

// Looked records that the ledger is as expected. A halt is over once a batch is done, or if there is nothing to
// read: otherwise the flow may not have reached the cause of the halt yet.
func (s *Status) Looked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(waitsWrite, nil)
	if time.Since(s.begun) > haltOver && s.CaughtUp.Load() {
		s.goOn()
	}
}

// Swept records that a batch is done. A batch that wrote nothing, because the shards had counted it already,
// does not end a halt: the cause of the halt is at a later offset.
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

// Line returns the worker's current line.
func (s *Status) Line() workers.Line {
	l, _, _ := s.Shown()
	return l
}

// Shown returns the line; the start of the worker's longest current wait, if it waits; and the time of its last
// round.
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
