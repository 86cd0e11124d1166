// Package sealing makes windows final that accept no more events.
//
//	the clocks of every shard and of the replica are past a window's end and lateness  ─▶  the window is due
//	then the ends of the logs are looked up                                            ─▶  the events that must count
//	each shard seals the window in a script that compares its ledger with these ends
//	  if the ledger is behind them, the next run compares it with the same ends
//
// Sealing is a job of the leader (internal/jobs). The script compares every condition, except the replica's
// own clock. So two replicas may seal at the same time, and a replica that is paused in between causes no
// error.
//
// A clock that is ahead could seal windows whose events are still to come. A window is due only if the
// clocks of Redis and of the replica are both past it, so one wrong clock does nothing.
package sealing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

const (
	// mostApart is the largest difference between the clocks of Redis and of a replica that is not logged,
	// and apartEvery the interval of that log line.
	mostApart  = time.Minute
	apartEvery = time.Hour
	// waitsEvery is the interval of the log line that reports windows that wait to be sealed.
	waitsEvery = time.Minute
	// mostNamed is the number of windows that a log line names.
	mostNamed = 10
)

// Sealer seals windows. It may be used by one goroutine at a time.
type Sealer struct {
	Boards *boards.Boards
	Kafka  *kafka.Client
	Topics []string
	// Lateness returns how long after its end a window accepts events, and false if its period is not kept.
	Lateness func(ledger.Window) (time.Duration, bool)
	Pause    time.Duration    // between two pages of the listing
	Now      func() time.Time // the replica's own clock
	Log      *zap.Logger

	apart retry.LogLimit
	told  retry.LogLimit // that windows wait
	waits waiting
}

// waiting records the windows that were due in an earlier run, and the ends of the logs at that time, which
// the ledger had not reached. If each run used new ends, the windows would wait forever while events keep
// coming.
type waiting struct {
	windows map[boards.DueID]bool
	before  map[ledger.Partition]int64
}

// Result is the result of a call of Seal.
type Result struct {
	Due    int      // number of windows that are due and not final
	Final  []string // windows that became final on every shard
	Passes error    // the transient reason that other windows are not final yet
	// Next is the time until another listed window is due; an hour at most.
	Next time.Duration
}

// Seal seals the windows that are due. If it returns an error it may have sealed some of them; it can be
// called again.
func (s *Sealer) Seal(ctx context.Context) (Result, error) {
	redis, last, err := s.Boards.Clocks(ctx)
	if err != nil {
		return Result{}, err
	}
	own := s.Now()
	s.compare(redis, last, own)
	next := nextDue{at: min(redis.UnixMilli(), own.UnixMilli()), in: time.Hour}
	due, err := s.Boards.Due(ctx, redis, own, next.watch(s.Lateness), s.Pause)
	if err != nil || len(due) == 0 {
		return Result{Next: next.in}, err
	}
	before, err := s.ends(ctx)
	if err != nil {
		return Result{Due: len(due)}, err
	}
	all := len(due)
	due, before = s.waits.first(due, before)
	sealed, err := s.Boards.Seal(ctx, before, due)
	switch {
	case err == nil:
		s.waits = waiting{}
	case errors.Is(err, ranking.ErrBehind):
		s.waits.add(due, before)
	}
	r := Result{Due: all - len(sealed.Final), Final: sealed.Final, Next: next.in}
	if n := len(sealed.Final); n > 0 {
		s.Log.Info("windows are final", zap.Int("windows", n), zap.Strings("first", sealed.Final[:min(n, mostNamed)]))
	}
	for _, passes := range []error{ranking.ErrBehind, ranking.ErrHeld, ranking.ErrRebuilding} {
		if errors.Is(err, passes) {
			if s.told.Due(waitsEvery) {
				s.Log.Info("windows wait to be sealed until every event that was in the log as they ended counts; an open transaction holds it back as well",
					zap.Int("windows", r.Due), zap.Error(err))
			}
			r.Passes, err = err, nil
			break
		}
	}
	return r, err
}

// nextDue finds the earliest closing time of the windows that are open at time at, Unix ms.
type nextDue struct {
	at int64
	in time.Duration
}

// watch returns lateness, extended to record every window that it is called for.
func (n *nextDue) watch(lateness func(ledger.Window) (time.Duration, bool)) func(ledger.Window) (time.Duration, bool) {
	return func(w ledger.Window) (time.Duration, bool) {
		late, ok := lateness(w)
		if left := w.End + late.Milliseconds() - n.at; ok && left >= 0 && left < n.in.Milliseconds() {
			n.in = time.Duration(left+1) * time.Millisecond
		}
		return late, ok
	}
}

// first returns the windows to seal now and the ends to compare with. Windows that wait come first, with
// the ends of their earlier run; events that came since are late for them. If a log now ends before such an
// end, it has lost records, and the new end counts.
func (w *waiting) first(due []boards.Due, ends map[ledger.Partition]int64) ([]boards.Due, map[ledger.Partition]int64) {
	waited := slices.DeleteFunc(slices.Clone(due), func(d boards.Due) bool { return !w.windows[d.ID()] })
	if len(waited) == 0 {
		return due, ends
	}
	before := map[ledger.Partition]int64{}
	for partition, end := range ends {
		if was, found := w.before[partition]; found { // missing if the partition was added since
			before[partition] = min(was, end)
		}
	}
	return waited, before
}

func (w *waiting) add(due []boards.Due, before map[ledger.Partition]int64) {
	w.windows, w.before = map[boards.DueID]bool{}, before
	for _, d := range due {
		w.windows[d.ID()] = true
	}
}

// compare logs a difference between the replica's own clock and those of the shards. first is the clock
// furthest behind, and last the one furthest ahead.
func (s *Sealer) compare(first, last, own time.Time) {
	if max(own.Sub(first), last.Sub(own)) <= mostApart {
		s.apart.Reset()
		return
	}
	if s.apart.Due(apartEvery) {
		s.Log.Warn("the clocks of Redis and of this process differ: windows are sealed only once both are past their end and lateness",
			zap.Time("redis_first", first), zap.Time("redis_last", last), zap.Time("own", own))
	}
}

// ends returns the ends of the logs of all topics, including open transactions.
func (s *Sealer) ends(ctx context.Context) (map[ledger.Partition]int64, error) {
	numbers, err := kafkaconn.Partitions(ctx, s.Kafka, s.Topics...)
	if err != nil {
		return nil, fmt.Errorf("look where the logs end: %w", err)
	}
	all := map[ledger.Partition]int64{}
	for _, topic := range s.Topics {
		n, ok := numbers[topic]
		if !ok {
			return nil, fmt.Errorf("look where the logs end: there is no topic %s", topic)
		}
		ends, err := kafkaconn.Ends(ctx, s.Kafka, kafka.ReadUncommitted, topic, kafkaconn.UpTo(n)...)
		if err != nil {
			return nil, err
		}
		for number, end := range ends {
			all[ledger.Partition{Topic: topic, Number: number}] = end
		}
	}
	return all, nil
}
