package start

// This file decides what a start proves: which windows lack no record, although records before the start were
// deleted. Record times are not monotonic (an offline client's events carry old times), so the first remaining
// record alone does not bound the times of deleted ones.

import (
	"cmp"
	"math"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Beginning has Kafka's answers about the start of one partition of a topic.
type Beginning struct {
	Log       kafkaconn.Log
	Since     int64       // the first offset at or after the requested time, or -1
	First     First       // the first record of the log
	Trail     trail.Trail // that the group has committed
	Committed int64       // the offset that the group has committed; 0 if none
}

// First is the first record from an offset on.
type First struct {
	None     bool // there is no record
	Offset   int64
	Time     int64 // Unix ms; 0 if it has none
	Appended bool  // the time is the broker's: LogAppendTime
}

// Judge has the facts that apply to all partitions of a topic.
type Judge struct {
	Now       int64  // Redis's clock in Unix ms, read after Kafka has answered
	MaxFuture int64  // ms
	Disorder  *int64 // ms; nil if the operator has not set it
}

// Latest returns the lowest bound on the times of the records before an offset, in Unix ms. f is the first
// record from that offset on. 0 means that none of them has a time. It returns false if no bound other than the
// current time applies. The bounds are:
//
//   - offset 0: there are no records before it;
//   - the trail;
//   - LogAppendTime: brokers' times do not decrease;
//   - the operator's setting disorder;
//   - else the current time, or the trail's last time if that is later.
func (j Judge) Latest(offset int64, t *trail.Trail, f First) (best int64, ok bool) {
	if offset == 0 {
		return 0, true
	}
	best, ok = t.Latest(offset)
	better := func(at int64) {
		if !ok || at < best {
			best, ok = at, true
		}
	}
	if !f.None && f.Time > 0 {
		if f.Appended {
			better(f.Time)
		}
		if j.Disorder != nil {
			better(sum(f.Time, *j.Disorder))
		}
	}
	if !ok {
		best = max(j.Now, t.LastTime())
	}
	return best, ok
}

// Origin returns the origin of a partition that is read from an offset on, if the records before it have times
// of at most latest. An event is at most max_future later than its record, so each missing event is earlier
// than the origin's time.
func (j Judge) Origin(offset, latest int64) ledger.Origin {
	if offset == 0 || latest <= 0 {
		return ledger.Origin{Offset: offset}
	}
	return ledger.Origin{Offset: offset, Time: sum(latest, j.MaxFuture+1)}
}

// LatestBefore returns the bound on the times of the records before an origin's offset, from which Origin
// computed it.
func (t *Terms) LatestBefore(o ledger.Origin) int64 { return max(0, o.Time-t.MaxFuture-1) }

// sum adds two numbers that are not negative. On overflow it returns math.MaxInt64.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// Resolve turns a start into an offset, and returns it with a bound on the times of the records before it.
func (j Judge) Resolve(w Where, b *Beginning) (at, latest int64) {
	at = b.Log.Start
	latest, _ = j.Latest(at, &b.Trail, b.First)
	switch w.From {
	case FromLatest:
		at = b.Log.End
		if at > b.Log.Start {
			latest, _ = j.Latest(at, &b.Trail, First{None: true})
		}
	case FromWindow, FromTime:
		switch {
		case !b.First.None && b.First.Time <= 0: // the records have no times
		case b.Since < 0:
			at = b.Log.End // all records are older
		default:
			at = b.Since
		}
		if at > b.Log.Start { // the remaining records before at are older than the requested time
			latest = max(latest, w.Since()-1)
		}
	case FromEarliest:
	}
	return at, latest
}

// reaches reports whether a log lacks no record of this time or later: it starts at offset 0, or every deleted
// record is known to be older.
func (j Judge) reaches(b *Beginning, asked int64) bool {
	latest, _ := j.Latest(b.Log.Start, &b.Trail, b.First)
	return latest <= 0 || latest < asked
}

// Reach returns the time since when a log has every record, and the earliest start of a window whose events the
// log has completely, both in Unix ms. Both are 0 if the log starts at offset 0. If nothing bounds the times of
// the deleted records, since is the time of the first remaining record: producers send records roughly in the
// order of their times.
func (j Judge) Reach(b *Beginning) (since, complete int64) {
	if b.Log.Start == 0 {
		return 0, 0
	}
	latest, ok := j.Latest(b.Log.Start, &b.Trail, b.First)
	since = b.First.Time
	if ok || since == 0 {
		since = max(since, latest)
	}
	return cmp.Or(since, j.Now), j.Origin(b.Log.Start, latest).Time
}
