package ingest

// The trail: what Kafka is given to remember of the times of records that it will delete.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// trail is a list of marks, offsets and times both ascending. It travels as the metadata
// of every offset that the group commits, so that it outlives both the records and Redis.
// A mark speaks of the log alone: it stays true wherever the ledger is, and goes back to.
//
// Marks get sparser with age: no two are closer than markStep, and where there are more
// than fit, the one goes whose neighbours are closest for their age. What it bounded, the
// next one bounds: later, but true.
type trail struct {
	n     int
	marks [maxMarks]trailMark
}

// trailMark says that every record of the partition before an offset, deleted or not, has a
// time of at most this, in Unix ms; 0 says that none has one.
type trailMark struct{ offset, time int64 }

const (
	maxMarks = 24
	markStep = int64(10 * time.Minute / time.Millisecond)
	// maxTrail is the longest text of a trail, in bytes: brokers take 4096 by default
	// (offset.metadata.max.bytes).
	maxTrail = 1024
	// trailVersion begins the text: what begins otherwise is another program's.
	trailVersion = "standings/1 "
)

// last is the newest mark, zero without any.
func (t *trail) last() trailMark {
	if t.n == 0 {
		return trailMark{}
	}
	return t.marks[t.n-1]
}

// latest bounds the times of the records before an offset by the first mark at or after
// it. It is false where there is none.
func (t *trail) latest(offset int64) (int64, bool) {
	for _, m := range t.marks[:t.n] {
		if m.offset >= offset {
			return m.time, true
		}
	}
	return 0, false
}

// add notes a mark, unless the newest bounds its offset as well or better.
func (t *trail) add(offset, at int64) {
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
	t.marks[t.n] = trailMark{offset, at}
	t.n++
}

// thin drops a mark before another is added: not the newest, which bounds all, nor the
// oldest, which has no neighbour to be close to.
func (t *trail) thin(newest int64) {
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

// with is what two trails of the same log know together.
func (t *trail) with(other *trail) trail {
	all := append(slices.Clone(t.marks[:t.n]), other.marks[:other.n]...)
	slices.SortFunc(all, func(a, b trailMark) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.time, a.time)) // the lower one is added last, and stays
	})
	var both trail
	for _, m := range all {
		both.add(m.offset, m.time)
	}
	return both
}

// within is the trail of a log that ends at an offset. Marks beyond are those of a log that
// was truncated, and they go: what was written behind the cut since then may be later.
func (t *trail) within(end int64) trail {
	kept := *t
	for kept.n > 0 && kept.last().offset > end {
		kept.n--
	}
	return kept
}

// denies reports whether a record's time is later than the trail says of the records up to
// its offset: then the trail is of another log, which was truncated or made again under the
// same name and has grown since.
func (t *trail) denies(offset, at int64) bool {
	latest, ok := t.latest(offset + 1)
	return ok && latest < at
}

// reach has the trail know something of an offset: if nothing was noted that far, the
// moment at which it was looked bounds what lies between. Somebody read those records who
// didn't come to commit, or they were deleted before anybody did. To read them again only
// for their times isn't worth it: the bound is as late as that moment for a while, and gets
// as exact as ever with the marks that follow.
func (t *trail) reach(offset, now int64) {
	if _, ok := t.latest(offset); !ok {
		t.add(offset, max(now, t.last().time))
	}
}

// String is the text that is committed.
func (t *trail) String() string {
	if t.n == 0 {
		return ""
	}
	b := []byte(trailVersion)
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

// parseTrail reads what String writes, and nothing else: the group may have had another
// program's offsets, with metadata of theirs.
func parseTrail(text string) (trail, error) {
	var t trail
	rest, ok := strings.CutPrefix(text, trailVersion)
	if !ok || len(text) > maxTrail {
		return trail{}, errNoTrail
	}
	for pair := range strings.SplitSeq(rest, ",") {
		o, at, _ := strings.Cut(pair, ":")
		offset, err1 := strconv.ParseInt(o, 10, 64)
		ms, err2 := strconv.ParseInt(at, 10, 64)
		switch {
		case err1 != nil || err2 != nil || offset <= 0 || ms < 0:
			return trail{}, fmt.Errorf("%w: the mark %q", errNoTrail, pair)
		case t.n == maxMarks:
			return trail{}, fmt.Errorf("%w: too many marks", errNoTrail)
		case t.n > 0 && (offset <= t.last().offset || ms <= t.last().time):
			return trail{}, fmt.Errorf("%w: the mark %q is out of order", errNoTrail, pair)
		}
		t.marks[t.n] = trailMark{offset, ms}
		t.n++
	}
	if t.String() != text {
		return trail{}, fmt.Errorf("%w: not in canonical form", errNoTrail)
	}
	return t, nil
}
