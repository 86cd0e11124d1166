package simulate

// Where a partition has to begin.

import (
	"math"
	"slices"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/standings/standings/internal/periods"
)

// startsWell holds where a partition's start was written against what was asked for.
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
			return // it may be the first start, or Redis was lost: then it is another
		}
		from = starts.FromWindow // the least that both come to: earlier windows' lives may be over
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

// startsLate holds that a topic's first start counts nothing that wasn't asked for.
func (sh *shard) startsLate(p *partition, at int64) {
	w := sh.w
	if w.ofTopic(w.kafka.committed, p.topic) > 0 || p.id >= len(w.ends) {
		return // it may be a lost Redis: that is read from where windows live
	}
	if w.setup.Disorder && w.setup.Start == starts.FromTime {
		return // where records have no times, it is read from its beginning
	}
	if p.misled > 0 && slices.ContainsFunc(w.masters, func(m *master) bool { return !m.changed.IsZero() }) {
		return // its leader had told of an end that wasn't, and what was begun by then was lost
	}
	earliest := w.ends[p.id]
	switch w.setup.Start {
	case starts.FromTime:
		if first := p.first(w.setup.StartTime); first >= 0 {
			earliest = min(earliest, first)
		}
	case starts.FromLatest:
	case starts.FromWindow, starts.FromEarliest: // no record is from before a window that lives
		return
	}
	if at < earliest {
		w.failf("partition %d starts at offset %d, and what was asked for begins at %d", p.id, at, earliest)
	}
}

// first is the first offset of a record of a time or later, whatever became of its
// transaction; -1 without one.
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

// liveSince is no later than the start of the earliest window that lives, less what
// events may lie in the future. It goes by the product's calendar, as hashOf does by its
// hash; of both the standings tell, which the oracle works out without them.
func (w *world) liveSince() int64 {
	earliest := int64(math.MaxInt64)
	now := w.now()
	for _, name := range w.setup.Periods {
		rule := w.rule(name)
		window, place, err := rule.At(now.UnixMilli())
		if place == periods.After {
			window, _ = rule.First() // a season's only one
		}
		for err == nil && window.End != 0 && window.End+retention[name].Milliseconds() > now.UnixMilli() {
			earliest = min(earliest, window.Start)
			window, _, err = rule.At(window.Start - 1)
		}
	}
	return earliest - maxFuture.Milliseconds()
}

// excused is the offset before which a shard needn't count what others don't, the highest at
// which one of them ever began: a shard that was lost begins no earlier.
func (sh *shard) excused(partition int) (bound int64) {
	for _, o := range sh.w.shards {
		if o != sh {
			bound = max(bound, o.began[partition])
		}
	}
	return bound
}
