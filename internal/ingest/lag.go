package ingest

import (
	"context"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// lag is how far a partition is behind: between where the ledger stands and where
// the log ended when the broker last answered. It is told a batch and a response at a
// time, never an event.
type lag struct {
	mu        sync.Mutex
	from, end int64     // every event before from counts; -1: not known yet
	since     int64     // ms: the time of the oldest record that doesn't count, 0 without one
	asked     time.Time // when the end was last seen
}

// Lag is how far a partition is behind.
type Lag struct {
	Known   bool  // false before ledger and log were looked at
	Records int64 // offsets, which transactions and compaction leave gaps in
	// Since is the time of the oldest record that doesn't count, zero without one.
	// Before that record was read it is the time since when there is one.
	Since time.Time
}

func noLag() lag { return lag{from: -1, end: -1} }

// located is called with where the ledger stands and the log ends.
func (l *lag) located(from, end int64) {
	l.change(func() {
		if from < l.from {
			l.since = 0 // gone back: older records than we knew of
		}
		l.from, l.end, l.asked = from, end, time.Now()
	})
}

// goesOn is called with where the ledger stands, once that is settled.
func (l *lag) goesOn(from int64) { l.change(func() { l.from = from }) }

// ends is called with where the log ends.
func (l *lag) ends(end int64) { l.change(func() { l.end, l.asked = end, time.Now() }) }

// sweeping is called with the time of the oldest record of the batch that is swept
// now, 0 if none has one.
func (l *lag) sweeping(oldest int64) {
	l.change(func() {
		if oldest > 0 {
			l.since = oldest
		}
	})
}

// counts is called where a batch is through, with its end and the time of its newest
// record. What follows it is hardly older.
func (l *lag) counts(to, newest int64) {
	l.change(func() {
		l.from, l.since = to, max(newest, 0)
	})
}

func (l *lag) change(to func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to()
	switch {
	case l.from >= l.end || l.from < 0:
		l.since = 0
	case l.since == 0:
		l.since = time.Now().UnixMilli()
	}
}

// stale reports whether the end was last seen longer ago than that.
func (l *lag) stale(after time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.asked) > after
}

func (l *lag) get() Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from < 0 || l.end < 0 {
		return Lag{}
	}
	g := Lag{Known: true, Records: max(0, l.end-l.from)}
	if l.since > 0 {
		g.Since = time.UnixMilli(l.since)
	}
	return g
}

// endEvery is how often the ends of logs are asked for that nobody reads: a partition
// that is halted or waits for the standings falls behind all the same.
const endEvery = 5 * time.Second

// watchEnds asks until the generation ends.
func (c *Consumer) watchEnds(ctx context.Context, workers []*worker) {
	tick := time.NewTicker(endEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		unread := map[string][]int{}
		for _, w := range workers {
			if w.lag.stale(endEvery + 2*c.FetchWait) {
				unread[w.topic] = append(unread[w.topic], w.partition)
			}
		}
		for topic, partitions := range unread {
			ends, err := c.kafka.offsets(ctx, topic, partitions, kafka.LastOffsetOf)
			if err != nil {
				c.Log.Debug("couldn't ask where logs end that aren't read", zap.Error(err))
				continue
			}
			for _, w := range workers {
				if end, ok := ends[w.partition]; ok && w.topic == topic {
					w.lag.ends(end.LastOffset)
				}
			}
		}
	}
}
