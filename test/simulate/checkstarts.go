package simulate

// Where a partition has to begin.

import (
	"math"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/periods"
)

// startsWell holds where a partition's start was written against what was asked for.
func (w *world) startsWell(partition int, at int64, added bool) {
	p := w.kafka.partitions[partition]
	from, since := w.setup.Start, w.setup.StartTime
	if added {
		from = ingest.FromWindow
	} else {
		w.startsLate(p, at)
	}
	if len(w.kafka.committed) > 0 || len(w.furthest) > w.setup.Partitions || w.counts[wipe]+w.counts[rollback]+w.counts[evict] > 0 {
		if from == ingest.FromLatest || from == ingest.FromTime {
			return // it may be the first start, or Redis was lost: then it is another
		}
		from = ingest.FromWindow // the least that both come to: earlier windows' lives may be over
	}
	switch from {
	case ingest.FromEarliest:
		since = math.MinInt64
	case ingest.FromWindow:
		since = w.liveSince()
	case ingest.FromTime:
	case ingest.FromLatest:
		return
	}
	p.visible(p.start, func(r *stored) {
		if r.offset < at && r.time >= since {
			w.failf("partition %d starts at offset %d, and the event at %d would count too", partition, at, r.offset)
		}
	})
}

// startsLate holds that a topic's first start counts nothing that wasn't asked for.
func (w *world) startsLate(p *partition, at int64) {
	if len(w.kafka.committed) > 0 || p.id >= len(w.ends) {
		return // it may be a lost Redis: that is read from where windows live
	}
	if w.setup.Disorder && w.setup.Start == ingest.FromTime {
		return // where records have no times, it is read from its beginning
	}
	earliest := w.ends[p.id]
	switch w.setup.Start {
	case ingest.FromTime:
		if first := p.first(w.setup.StartTime); first >= 0 {
			earliest = min(earliest, first)
		}
	case ingest.FromLatest:
	case ingest.FromWindow, ingest.FromEarliest: // no record is from before a window that lives
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
		at := now
		window, err := w.calendar.At(periods.Period(name), at.UnixMilli())
		for err == nil && window.End+retention[name].Milliseconds() > now.UnixMilli() {
			earliest = min(earliest, window.Start)
			window, err = w.calendar.At(periods.Period(name), window.Start-1)
		}
	}
	return earliest - maxFuture.Milliseconds()
}
