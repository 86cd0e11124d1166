package simulate

// This file checks where partitions start.

import (
	"math"
	"slices"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/standings/standings/internal/periods"
)

// startsWell compares the written start of a partition with the configured start.
func (sh *shard) startsWell(partition int, at int64, added bool) {
	w := sh.w
	p := w.kafka.partitions[partition]
	from, since := w.setup.Start, w.setup.StartTime
	if added {
		from = starts.FromWindow
	} else {
		sh.startsLate(p, at)
	}
	if w.ofTopic(w.kafka.committed, p.topic) > 0 || w.ofTopic(sh.furthest, p.topic) > w.setup.partitions(p.topic) || w.counts[wipe]+w.counts[rollback]+w.counts[evict] > 0 {
		if from == starts.FromLatest || from == starts.FromTime {
			return // it may be the first start, or Redis was lost, which starts elsewhere
		}
		from = starts.FromWindow // both cases include these windows; earlier ones may have expired
	}
	switch from {
	case starts.FromEarliest:
		since = math.MinInt64
	case starts.FromWindow:
		since = w.liveSince()
	case starts.FromTime:
	case starts.FromLatest:
		return
	}
	bound := p.start
	if !added {
		bound = max(bound, sh.excused(partition))
	}
	p.visible(bound, func(r *stored) {
		if r.offset < at && r.time >= since {
			w.failf("partition %d starts at offset %d%s, and the event at %d would count too", partition, at, sh.named(), r.offset)
		}
	})
}

// startsLate checks that a topic's first start counts no events from before the configured start.
func (sh *shard) startsLate(p *partition, at int64) {
	w := sh.w
	if w.ofTopic(w.kafka.committed, p.topic) > 0 || p.id >= len(w.ends) {
		return // Redis may have been lost: then the start is that of the live windows
	}
	if w.setup.Disorder && w.setup.Start == starts.FromTime {
		return // if records have no times, reading starts at the beginning
	}
	if p.misled > 0 && slices.ContainsFunc(w.masters, func(m *master) bool { return !m.changed.IsZero() }) {
		return // its leader had reported a wrong end, and Redis then lost the start
	}
	earliest := w.ends[p.id]
	switch w.setup.Start {
	case starts.FromTime:
		if first := p.first(w.setup.StartTime); first >= 0 {
			earliest = min(earliest, first)
		}
	case starts.FromLatest:
	case starts.FromWindow, starts.FromEarliest: // no record is from before a live window
		return
	}
	if at < earliest {
		w.failf("partition %d starts at offset %d, and what was asked for begins at %d", p.id, at, earliest)
	}
}

// first returns the first offset with a record of the time ms or later, also in an aborted transaction; -1
// if there is none.
func (p *partition) first(ms int64) int64 {
	for _, b := range p.batches {
		for _, r := range b.records {
			if r.time >= ms {
				return r.offset
			}
		}
	}
	return -1
}

// liveSince returns a time at or before the start of the earliest live window, less max_future. It uses the
// product's calendar, as hashOf uses its hash; the standings, which the oracle computes without them,
// verify both.
func (w *world) liveSince() int64 {
	earliest := int64(math.MaxInt64)
	now := w.now()
	for _, name := range w.setup.Periods {
		rule := w.rule(name)
		window, place, err := rule.At(now.UnixMilli())
		if place == periods.After {
			window, _ = rule.First() // a season has only one window
		}
		for err == nil && window.End != 0 && window.End+retention[name].Milliseconds() > now.UnixMilli() {
			earliest = min(earliest, window.Start)
			window, _, err = rule.At(window.Start - 1)
		}
	}
	return earliest - maxFuture.Milliseconds()
}

// excused returns the offset before which a shard need not count events that other shards do not count: the
// highest start of another shard. A lost shard starts no earlier.
func (sh *shard) excused(partition int) (bound int64) {
	for _, o := range sh.w.shards {
		if o != sh {
			bound = max(bound, o.began[partition])
		}
	}
	return bound
}
