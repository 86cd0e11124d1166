// Package trail stores in Kafka the times of records that Kafka may delete. Times follows a log as it is read
// and builds its Trail, which the worker commits as the metadata of an offset. If the start of the log was
// deleted, the next reader takes from the trail how late the deleted records can have been.
package trail

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Trail is a list of marks, with offsets and times ascending. Every committed offset carries it as metadata, so
// that it outlives both the records and Redis. A mark depends on the log only: it stays valid whatever the
// ledger's position is.
//
// Marks get sparser with age. Two marks are at least markStep apart. If there are too many, the one whose
// neighbours are closest for their age is dropped. The next mark then bounds its records: by a later time, but
// correctly.
type Trail struct {
	Lineage Lineage

	n     int
	marks [maxMarks]mark
}

// Lineage is a place in the log of a leader epoch: the record before Offset was written in Epoch or an earlier
// epoch, and no record before Offset in a later one. If an election loses records, the new leader reports that
// the epoch ends before Offset (KIP-320). The zero Lineage is unknown.
type Lineage struct {
	Offset int64
	Epoch  int32
}

// mark states that every record of the partition before offset, deleted or not, has at most this time, in Unix
// ms. The time 0 means that none of them has a time.
type mark struct{ offset, time int64 }

const (
	maxMarks = 24
	markStep = int64(10 * time.Minute / time.Millisecond)
	// MaxText is the maximum length of a trail's text, in bytes. Brokers accept 4096 by default
	// (offset.metadata.max.bytes).
	MaxText = 1024
	// trailVersion is the start of the text. A text with another start is another program's.
	trailVersion = "standings/2 "
)

// last returns the newest mark, zero if there is none.
func (t *Trail) last() mark {
	if t.n == 0 {
		return mark{}
	}
	return t.marks[t.n-1]
}

// LastTime returns the newest mark's time, zero if there is none.
func (t *Trail) LastTime() int64 { return t.last().time }

// Latest returns a bound on the times of the records before an offset, in Unix ms: the time of the first mark
// at or after it. It returns false if there is none.
func (t *Trail) Latest(offset int64) (int64, bool) {
	for _, m := range t.marks[:t.n] {
		if m.offset >= offset {
			return m.time, true
		}
	}
	return 0, false
}

// Add adds a mark, unless the newest mark bounds its offset equally well or better.
func (t *Trail) Add(offset, at int64) {
	at = max(at, 0)
	if last := t.last(); offset <= 0 || offset < last.offset || offset == last.offset && at >= last.time {
		return
	}
	for t.n > 0 && t.last().time >= at { // of equal times, the one with the higher offset covers more
		t.n--
	}
	if t.n >= 2 && at-t.marks[t.n-2].time < markStep {
		t.n--
	}
	if t.n == maxMarks {
		t.thin(at)
	}
	t.marks[t.n] = mark{offset, at}
	t.n++
}

// thin drops a mark to make room for another. It keeps the newest, which bounds all records, and the oldest,
// which has only one neighbour.
func (t *Trail) thin(newest int64) {
	least, which := 0.0, -1
	for i := 1; i < t.n-1; i++ {
		gap := t.marks[i+1].time - t.marks[i-1].time
		if cost := float64(gap) / (float64(newest-t.marks[i].time) + float64(markStep)); which < 0 || cost < least {
			least, which = cost, i
		}
	}
	copy(t.marks[which:], t.marks[which+1:t.n])
	t.n--
}

// With merges two trails of the same log.
func (t *Trail) With(other *Trail) Trail {
	all := append(slices.Clone(t.marks[:t.n]), other.marks[:other.n]...)
	slices.SortFunc(all, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.time, a.time)) // the lower time is last, and stays
	})
	both := Trail{Lineage: t.Lineage}
	if other.Lineage.Offset > both.Lineage.Offset {
		both.Lineage = other.Lineage
	}
	for _, m := range all {
		both.Add(m.offset, m.time)
	}
	return both
}

// Within returns the trail of a log that ends at an offset. It drops later marks: the log was truncated there,
// and records written since may have later times.
func (t *Trail) Within(end int64) Trail {
	kept := *t
	for kept.n > 0 && kept.last().offset > end {
		kept.n--
	}
	return kept
}

// Before returns the part of the trail that bounds the records before an offset. An election lost the records
// from there on (KIP-320), and the records that replace them may be later than the marks state.
func (t *Trail) Before(offset int64) Trail {
	kept := t.Within(offset)
	if latest, ok := t.Latest(offset); ok {
		kept.Add(offset, latest)
	}
	return kept
}

// denies reports whether a record is later than the trail's bound for the records up to its offset. The trail
// is then another log's: the topic was truncated, or created again under the same name, and has grown since.
func (t *Trail) denies(offset, at int64) bool {
	latest, ok := t.Latest(offset + 1)
	return ok && latest < at
}

// Reach makes the trail bound an offset. If no mark reaches that far, the current time bounds the records in
// between: either a worker read them and did not commit, or they were deleted unread. Reading them again only
// for their times is not worth it. The bound is that late for a while, and exact again with the marks that
// follow.
func (t *Trail) Reach(offset, now int64) {
	if _, ok := t.Latest(offset); !ok {
		t.Add(offset, max(now, t.last().time))
	}
}

// String returns the text to commit: the lineage as epoch@offset, and the marks.
func (t *Trail) String() string {
	if *t == (Trail{}) {
		return ""
	}
	b := []byte(trailVersion)
	b = strconv.AppendInt(b, int64(t.Lineage.Epoch), 10)
	b = append(b, '@')
	b = strconv.AppendInt(b, t.Lineage.Offset, 10)
	if t.n > 0 {
		b = append(b, ' ')
	}
	for i, m := range t.marks[:t.n] {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, m.offset, 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, m.time, 10)
	}
	return string(b)
}

var errNoTrail = errors.New("no trail")

// Parse reads exactly what String writes. It returns an error for other texts, because another program with the
// same group may have committed its own metadata.
func Parse(text string) (Trail, error) {
	var t Trail
	rest, ok := strings.CutPrefix(text, trailVersion)
	if !ok || len(text) > MaxText {
		return Trail{}, errNoTrail
	}
	lineage, marks, some := strings.Cut(rest, " ")
	e, o, _ := strings.Cut(lineage, "@")
	epoch, err1 := strconv.ParseInt(e, 10, 32)
	offset, err2 := strconv.ParseInt(o, 10, 64)
	if err1 != nil || err2 != nil || epoch < 0 || offset < 0 {
		return Trail{}, fmt.Errorf("%w: the lineage %q", errNoTrail, lineage)
	}
	t.Lineage = Lineage{offset, int32(epoch)}
	for pair := range strings.SplitSeq(marks, ",") {
		if !some {
			break
		}
		o, at, _ := strings.Cut(pair, ":")
		offset, err1 := strconv.ParseInt(o, 10, 64)
		ms, err2 := strconv.ParseInt(at, 10, 64)
		switch {
		case err1 != nil || err2 != nil || offset <= 0 || ms < 0:
			return Trail{}, fmt.Errorf("%w: the mark %q", errNoTrail, pair)
		case t.n == maxMarks:
			return Trail{}, fmt.Errorf("%w: too many marks", errNoTrail)
		case t.n > 0 && (offset <= t.last().offset || ms <= t.last().time):
			return Trail{}, fmt.Errorf("%w: the mark %q is out of order", errNoTrail, pair)
		}
		t.marks[t.n] = mark{offset, ms}
		t.n++
	}
	if t.String() != text {
		return Trail{}, fmt.Errorf("%w: not in canonical form", errNoTrail)
	}
	return t, nil
}
