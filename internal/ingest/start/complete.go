package start

// What a start can prove: which windows lack no record, though records before it were
// deleted. Record times aren't monotonic (an offline client's events carry old times), so
// the first record that is left says nothing by itself of those that were before it.

import (
	"cmp"
	"math"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Beginning is where one partition of a topic begins: what Kafka answered for it.
type Beginning struct {
	Log       kafkaconn.Log
	Since     int64       // the first offset of the requested time, or -1
	First     First       // the log's first record
	Trail     trail.Trail // that the group committed
	Committed int64       // the offset that it committed; 0 without one
}

// First is the first record from an offset on.
type First struct {
	None     bool // there is no record
	Offset   int64
	Time     int64 // Unix ms; 0 where it has none
	Appended bool  // the time is the broker's: LogAppendTime
}

// Judge is what all partitions of a topic are judged by.
type Judge struct {
	Now       int64  // Redis's clock, Unix ms, as of after Kafka has answered
	MaxFuture int64  // ms
	Disorder  *int64 // ms; nil without the operator's word
}

// Latest bounds the times of the records before an offset, of which the first record from
// there on is known: the lowest of the bounds that hold. 0 says that none has a time. It is
// false where nothing holds but the moment.
//
//   - offset 0: there were none;
//   - the trail;
//   - LogAppendTime: brokers' times don't go back;
//   - the operator's word on disorder;
//   - else the moment at which it was looked, or what the trail knows to be later.
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

// Origin of a partition that is read from an offset on, where the records before it have
// times of at most latest. An event lies at most max_future after its record, so one that
// is missing lies before the origin's time.
func (j Judge) Origin(offset, latest int64) ledger.Origin {
	if offset == 0 || latest <= 0 {
		return ledger.Origin{Offset: offset}
	}
	return ledger.Origin{Offset: offset, Time: sum(latest, j.MaxFuture+1)}
}

// LatestBefore is what an origin says of the times of the records before its offset: what it was
// made of.
func (t *Terms) LatestBefore(o ledger.Origin) int64 { return max(0, o.Time-t.MaxFuture-1) }

// sum of two that aren't negative, or the most that there is.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// Resolve turns a start into an offset, and bounds the times of the records before it.
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
		case !b.First.None && b.First.Time <= 0: // no times to go by
		case b.Since < 0:
			at = b.Log.End // all records are older
		default:
			at = b.Since
		}
		if at > b.Log.Start { // what is left of those before is older than asked
			latest = max(latest, w.Since()-1)
		}
	case FromEarliest:
	}
	return at, latest
}

// reaches reports whether a log lacks no record of a time or later: it begins at offset 0,
// or all that was deleted is bounded to be older.
func (j Judge) reaches(b *Beginning, asked int64) bool {
	latest, _ := j.Latest(b.Log.Start, &b.Trail, b.First)
	return latest <= 0 || latest < asked
}

// Reach returns the time from which on a log has every record, and the time from which on a window has to start for the
// log to have all of its events, both in Unix ms. Both are 0 if the log begins at offset 0. If nothing bounds the times
// of the deleted records, the log has every record since its first one: producers send records about in the order of
// their times.
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
