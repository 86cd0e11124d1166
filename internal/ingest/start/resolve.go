package start

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Where is the place from which a topic without a ledger and without committed offsets is read.
type Where struct {
	From From
	Time time.Time // for FromTime, and for FromWindow once it is resolved
}

// Since returns the time in Unix ms, at least 0.
func (w Where) Since() int64 { return max(0, w.Time.UnixMilli()) }

// From is a kind of start.
type From int

const (
	// FromWindow is the first offset that can hold an event of a live window.
	FromWindow From = iota
	// FromEarliest is the log's start.
	FromEarliest
	// FromLatest is the log's end.
	FromLatest
	// FromTime is the first record at or after a time.
	FromTime
)

// OnGap decides what happens if events were deleted from the log before they were counted.
type OnGap int

const (
	// GapHalts halts the partition and reports what is missing.
	GapHalts OnGap = iota
	// GapContinues continues with the remaining records and shows windows as incomplete.
	GapContinues
)

// Terms are the settings that starts depend on. They are immutable.
type Terms struct {
	Where     Where
	OnGap     OnGap
	Kept      []Kept
	MaxFuture int64          // how far an event's time may be past its record's time, in ms
	Disorder  *time.Duration // nil if the operator has not set it
}

// Kept is a period, and how long after its end a window of it stays in Redis.
type Kept struct {
	Rule      periods.Rule
	Retention time.Duration
}

// Judge returns the facts for starts, with the current time by Redis's clock.
func (t *Terms) Judge(now time.Time) Judge {
	j := Judge{Now: now.UnixMilli(), MaxFuture: t.MaxFuture}
	if t.Disorder != nil {
		d := t.Disorder.Milliseconds()
		j.Disorder = &d
	}
	return j
}

// Asked returns the start of a whole topic for a step, with the current time by Redis's clock.
func (t *Terms) Asked(s Step, now time.Time) (Where, error) {
	if s == Recover || t.Where.From == FromWindow {
		return t.Window(now)
	}
	return t.Where, nil
}

// Window returns a start at the first offset that can hold an event of a live window.
func (t *Terms) Window(now time.Time) (Where, error) {
	live, err := liveFrom(t.Kept, now)
	return Where{FromWindow, time.UnixMilli(max(0, live-t.MaxFuture))}, err
}

// Topic returns the start positions of all partitions of a topic for a step, and their trails at the start.
func (t *Terms) Topic(topic string, s Step, w Where, all []Beginning, j Judge) ([]ledger.StartPosition, []trail.Trail, error) {
	var set []ledger.StartPosition
	var trails []trail.Trail
	for n := range all {
		b, p := &all[n], ledger.Partition{Topic: topic, Number: n}
		if s == Recover && !j.reaches(b, w.Since()) && t.OnGap == GapHalts {
			return nil, nil, lostBoth(p, b, j)
		}
		at, latest := j.Resolve(w, b)
		origin := j.Origin(at, latest)
		begins := ledger.StartPosition{Partition: p, At: ledger.At(at), Origin: &origin}
		if s == Recover {
			// Everything counted before is below the log's end. If a newly elected leader does not know the end
			// yet, it is below the committed offset, except for the last moment.
			begins.Refill = max(b.Log.End, b.Committed)
		}
		set = append(set, begins)
		b.Trail.Add(at, latest)
		trails = append(trails, b.Trail)
	}
	return set, trails, nil
}

// lostBoth returns the halt for a lost Redis if the log may lack events that were counted.
func lostBoth(p ledger.Partition, b *Beginning, j Judge) *health.Halt {
	which := "of any window" // naming the current time would make a different text each time
	if latest, known := j.Latest(b.Log.Start, &b.Trail, b.First); known {
		before := time.UnixMilli(j.Origin(b.Log.Start, latest).Time)
		which = "of windows that still live and start before " + before.UTC().Format(time.RFC3339)
	}
	return &health.Halt{Reason: health.HaltGap,
		What: fmt.Sprintf("Redis has nothing of %s, which this group has read before, and the log of %v begins only at offset %d: what was deleted may hold events %s",
			p.Topic, p, b.Log.Start, which),
		Remedy: "restore a backup of Redis, or set on_gap: continue, which counts what the log still has and shows those windows as incomplete"}
}

// liveFrom returns the start, in Unix ms, of the earliest live window. A window lives until its end plus its
// retention. If it depends on a time zone, other time zone data may place it earlier, so the earliest possible
// start is used.
func liveFrom(all []Kept, now time.Time) (int64, error) {
	ms := now.UnixMilli()
	earliest := ms
	for i := range all {
		p, shift := &all[i], int64(0)
		if p.Rule.Zoned() {
			shift = periods.MaxShift
		}
		w, ok, err := p.Rule.Latest(ms)
		if err != nil {
			return 0, fmt.Errorf("the clock of Redis says %s: %w", now.UTC().Format(time.RFC3339), err)
		}
		for ; ok && w.End+p.Retention.Milliseconds()+shift > ms; w, ok = p.Rule.Previous(w) {
			earliest = min(earliest, w.Start-shift)
		}
	}
	return earliest, nil
}
