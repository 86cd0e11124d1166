// Package sealing has windows that take no events any more become final.
//
//	the clocks of every shard, and the replica's own, are past a window's end and lateness ─▶ due
//	then the logs' ends are looked up                                                        ─▶ what has to count before
//	each shard seals it in a script that compares its ledger with them
//	  where that isn't there yet, it is compared with the same ends at the next look
//
// Sealing is a job of the leader (internal/jobs). Nothing is decided here that the script doesn't compare, but for
// the replica's own clock: two replicas may seal at once, and one that is paused in between does no harm.
//
// A clock that is ahead would seal windows whose events are still to come. One of the two being so
// does nothing: a window is due once both are past it.
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
	// mostApart is how far the clocks of Redis and of a replica may differ until that is logged, and
	// apartEvery how often it is.
	mostApart  = time.Minute
	apartEvery = time.Hour
	// waitsEvery is how often it is logged that windows wait to be sealed.
	waitsEvery = time.Minute
	// mostNamed is how many windows a line names.
	mostNamed = 10
)

// Sealer seals windows. It is one goroutine's at a time.
type Sealer struct {
	Boards *boards.Boards
	Kafka  *kafka.Client
	Topics []string
	// Lateness is how long after its end a window takes events; false where it is none of a period
	// that is kept.
	Lateness func(ledger.Window) (time.Duration, bool)
	Pause    time.Duration    // between two pages of the listing
	Now      func() time.Time // the replica's own clock
	Log      *zap.Logger

	apart retry.LogLimit
	told  retry.LogLimit // that windows wait
	waits waiting
}

// waiting are windows that were due at a look, and where the logs ended then, which the ledger hadn't come
// to. By the ends of each new look they would wait for ever while events come all the time.
type waiting struct {
	windows map[boards.DueID]bool
	before  map[ledger.Partition]int64
}

// Result is what came of a call.
type Result struct {
	Due    int      // windows that could be final and aren't
	Final  []string // that are final on every shard now, and weren't
	Passes error    // why others aren't yet, if that passes by itself
	// Next is how long it is until another listed window is due; an hour at most.
	Next time.Duration
}

// Seal seals what is due. With an error it may have sealed some: to call again is harmless.
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

// nextDue finds when the first window closes that is open at a time, Unix ms.
type nextDue struct {
	at int64
	in time.Duration
}

// watch returns lateness, which also notes every window that it is called for.
func (n *nextDue) watch(lateness func(ledger.Window) (time.Duration, bool)) func(ledger.Window) (time.Duration, bool) {
	return func(w ledger.Window) (time.Duration, bool) {
		late, ok := lateness(w)
		if left := w.End + late.Milliseconds() - n.at; ok && left >= 0 && left < n.in.Milliseconds() {
			n.in = time.Duration(left+1) * time.Millisecond
		}
		return late, ok
	}
}

// first are the windows to be sealed now, and by which ends: those that wait, by the ends of then, before any
// others. What has come since is late for them. A log may end before it did: then it has lost its end.
func (w *waiting) first(due []boards.Due, ends map[ledger.Partition]int64) ([]boards.Due, map[ledger.Partition]int64) {
	waited := slices.DeleteFunc(slices.Clone(due), func(d boards.Due) bool { return !w.windows[d.ID()] })
	if len(waited) == 0 {
		return due, ends
	}
	before := map[ledger.Partition]int64{}
	for partition, end := range ends {
		if was, found := w.before[partition]; found { // another was added since
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

// compare logs where the replica's own clock differs from those of the shards, of which the first is
// furthest behind and the last furthest ahead.
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

// ends are where the logs of all topics end, with transactions that are open.
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
