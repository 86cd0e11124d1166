package model

import "fmt"

const maxRecords = 4

// trail bounds the times of the records before each offset. The value at an offset is the bound plus
// one, or 0 if the offset has no mark.
type trail [maxRecords + 1]int8

func (t trail) last() (offset, bound int8) {
	for o := int8(maxRecords); o > 0; o-- {
		if t[o] > 0 {
			return o, t[o] - 1
		}
	}
	return 0, 0
}

// latest returns the bound of the first mark at or after an offset.
func (t trail) latest(offset int8) (int8, bool) {
	for _, m := range t[offset:] {
		if m > 0 {
			return m - 1, true
		}
	}
	return 0, false
}

// before returns the bound of the last mark up to an offset, which a broken variant uses.
func (t trail) before(offset int8) (int8, bool) {
	for o := offset; o > 0; o-- {
		if t[o] > 0 {
			return t[o] - 1, true
		}
	}
	return 0, false
}

// add notes a mark, unless the newest mark is at a later offset, or at the same offset with a bound at least
// as low.
func (t trail) add(offset, bound int8, sparse bool) trail {
	bound = max(bound, 0)
	last, at := t.last()
	if offset <= 0 || offset < last || offset == last && bound >= at {
		return t
	}
	for ; last > 0 && at >= bound; last, at = t.last() {
		t[last] = 0
	}
	if sparse && last > 0 {
		t[last] = 0
		if before, _ := t.last(); before == 0 {
			t[last] = at + 1
		}
	}
	t[offset] = bound + 1
	return t
}

// with combines two trails of the same log.
func (t trail) with(other trail) (both trail) {
	for o := int8(1); o <= maxRecords; o++ {
		for _, m := range []int8{max(t[o], other[o]), min(t[o], other[o])} {
			if m > 0 {
				both = both.add(o, m-1, false)
			}
		}
	}
	return both
}

// within restricts a trail to a log that ends at end.
func (t trail) within(end int8) (kept trail) {
	for o := int8(1); o <= maxRecords; o++ {
		if t[o] == 0 {
			continue
		}
		kept = kept.add(min(o, end), t[o]-1, false)
		if o >= end {
			break
		}
	}
	return kept
}

func (t trail) String() string {
	text := ""
	for o, m := range t {
		if m > 0 {
			text += fmt.Sprintf(" %d:%d", o, m-1)
		}
	}
	return "[" + text + " ]"
}
