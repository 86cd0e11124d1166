// Package trail keeps what Kafka is given to remember of the times of records that it will
// delete. Times follows a log as it is read and makes its Trail, which is committed as the
// metadata of an offset; whoever finds that log's start deleted reads from it how late the
// records before the start can have been.
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

// Trail is a list of marks, offsets and times both ascending. It travels as the metadata
// of every offset that the group commits, so that it outlives both the records and Redis.
// A mark speaks of the log alone: it stays true wherever the ledger is, and goes back to.
//
// Marks get sparser with age: no two are closer than markStep, and where there are more
// than fit, the one goes whose neighbours are closest for their age. What it bounded, the
// next one bounds: later, but true.
type Trail struct {
	Lineage Lineage

	n     int
	marks [maxMarks]mark
}

// Lineage is the place in the log of a leader epoch: the record before Offset was written in Epoch or before it, and
// none before Offset was written after it. If an election loses records, the log that the new leader has says that
// the epoch ends before Offset (KIP-320). The zero Lineage is unknown.
type Lineage struct {
	Offset int64
	Epoch  int32
}

// mark says that every record of the partition before an offset, deleted or not, has a
// time of at most this, in Unix ms; 0 says that none has one.
type mark struct{ offset, time int64 }

const (
	maxMarks = 24
	markStep = int64(10 * time.Minute / time.Millisecond)
	// MaxText is the longest text of a trail, in bytes: brokers take 4096 by default
	// (offset.metadata.max.bytes).
	MaxText = 1024
	// trailVersion begins the text: what begins otherwise is another program's.
	trailVersion = "standings/2 "
)

// last is the newest mark, zero without any.
func (t *Trail) last() mark {
	if t.n == 0 {
		return mark{}
	}
	return t.marks[t.n-1]
}

// LastTime is the newest mark's time, zero without any.
func (t *Trail) LastTime() int64 { return t.last().time }

// Latest bounds the times of the records before an offset by the first mark at or after
// it. It is false if there is none.
func (t *Trail) Latest(offset int64) (int64, bool) {
	for _, m := range t.marks[:t.n] {
		if m.offset >= offset {
			return m.time, true
		}
	}
	return 0, false
}

// Add notes a mark, unless the newest bounds its offset as well or better.
func (t *Trail) Add(offset, at int64) {
	at = max(at, 0)
	if last := t.last(); offset <= 0 || offset < last.offset || offset == last.offset && at >= last.time {
		return
	}
	for t.n > 0 && t.last().time >= at { // of equal times the one further on says more
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

// thin drops a mark before another is added: not the newest, which bounds all, nor the
// oldest, which has no neighbour to be close to.
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

// With is what two trails of the same log know together.
func (t *Trail) With(other *Trail) Trail {
	all := append(slices.Clone(t.marks[:t.n]), other.marks[:other.n]...)
	slices.SortFunc(all, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.time, a.time)) // the lower one is added last, and stays
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

// Within is the trail of a log that ends at an offset. Marks beyond are those of a log that
// was truncated, and they go: what was written behind the cut since then may be later.
func (t *Trail) Within(end int64) Trail {
	kept := *t
	for kept.n > 0 && kept.last().offset > end {
		kept.n--
	}
	return kept
}

// Before is the part of the trail that bounds the records before an offset. An election has lost the records from there on
// (KIP-320), and those in their place may be later than the marks say.
func (t *Trail) Before(offset int64) Trail {
	kept := t.Within(offset)
	if latest, ok := t.Latest(offset); ok {
		kept.Add(offset, latest)
	}
	return kept
}

// denies reports whether a record's time is later than the trail says of the records up to
// its offset: then the trail is of another log, which was truncated or made again under the
// same name and has grown since.
func (t *Trail) denies(offset, at int64) bool {
	latest, ok := t.Latest(offset + 1)
	return ok && latest < at
}

// Reach has the trail know something of an offset: if nothing was noted that far, the
// moment at which it was looked bounds what lies between. Somebody read those records who
// didn't come to commit, or they were deleted before anybody did. To read them again only
// for their times isn't worth it: the bound is as late as that moment for a while, and gets
// as exact as ever with the marks that follow.
func (t *Trail) Reach(offset, now int64) {
	if _, ok := t.Latest(offset); !ok {
		t.Add(offset, max(now, t.last().time))
	}
}

// String is the text that is committed: the lineage as epoch@offset, and the marks.
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

// Parse reads what String writes, and nothing else: the group may have had another
// program's offsets, with metadata of theirs.
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
