package start

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Where says where a topic without a ledger and without committed offsets is
// read from.
type Where struct {
	From From
	Time time.Time // for FromTime, and FromWindow once that is resolved
}

// Since is the time, Unix ms.
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
	// FromTime is the first record of a time or later.
	FromTime
)

// OnGap says what to do where events are gone from the log before they counted.
type OnGap int

const (
	// GapHalts the partition, and says what is missing.
	GapHalts OnGap = iota
	// GapContinues with what is left, and shows windows as incomplete.
	GapContinues
)

// Terms are what the configuration says of starts. Nothing in them changes.
type Terms struct {
	Where     Where
	OnGap     OnGap
	Kept      []Kept
	MaxFuture int64          // how far an event may lie past its record's time, ms
	Disorder  *time.Duration // nil without the operator's word
}

// Kept is a period, and how long after its end a window of it lives.
type Kept struct {
	Rule      periods.Rule
	Retention time.Duration
}

// Judge is what starts are judged by at a moment of Redis's clock.
func (t *Terms) Judge(now time.Time) Judge {
	j := Judge{Now: now.UnixMilli(), MaxFuture: t.MaxFuture}
	if t.Disorder != nil {
		d := t.Disorder.Milliseconds()
		j.Disorder = &d
	}
	return j
}

// Asked is where a whole topic is to begin by a step, at a moment of Redis's clock.
func (t *Terms) Asked(s Step, now time.Time) (Where, error) {
	if s == Recover || t.Where.From == FromWindow {
		return t.Window(now)
	}
	return t.Where, nil
}

// Window is a start at the first offset that can hold an event of a window that lives.
func (t *Terms) Window(now time.Time) (Where, error) {
	live, err := liveFrom(t.Kept, now)
	return Where{FromWindow, time.UnixMilli(max(0, live-t.MaxFuture))}, err
}

// Topic is where all partitions of a topic start by a step, and what their trails know then.
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
			// What was counted before lies below the log's end; where a leader that was just
			// elected doesn't know that yet, below what was committed, but for the last moment.
			begins.Refill = max(b.Log.End, b.Committed)
		}
		set = append(set, begins)
		b.Trail.Add(at, latest)
		trails = append(trails, b.Trail)
	}
	return set, trails, nil
}

// lostBoth is the halt where Redis was lost, and the log may lack what it had.
func lostBoth(p ledger.Partition, b *Beginning, j Judge) *health.Halt {
	which := "of any window" // the moment of looking would be another text every time
	if latest, known := j.Latest(b.Log.Start, &b.Trail, b.First); known {
		before := time.UnixMilli(j.Origin(b.Log.Start, latest).Time)
		which = "of windows that still live and start before " + before.UTC().Format(time.RFC3339)
	}
	return &health.Halt{Reason: health.HaltGap,
		What: fmt.Sprintf("Redis has nothing of %s, which this group has read before, and the log of %v begins only at offset %d: what was deleted may hold events %s",
			p.Topic, p, b.Log.Start, which),
		Remedy: "restore a backup of Redis, or set on_gap: continue, which counts what the log still has and shows those windows as incomplete"}
}

// liveFrom is the start of the earliest window that lives at a moment: until its
// end plus its retention. Where a time zone decides it may lie earlier than it does by the data
// here, and is taken to.
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
