package periods

import "strings"

// Borders between windows, where time zone rules have changed since a window was opened.
//
// The rules of a time zone change, and processes may have different versions of them. So where a
// window of a calendar starts and ends is settled once, outside of this package, and a Rule can be
// bound to what was settled. A border is the end of one window and the start of the next: windows
// whose borders were settled by different versions have no gap and no overlap.
//
//	          settled      settled   by the calendar
//	             │            │            │
//	   2026-10   │  2026-11   │  2026-12   │  2027-01
//
// Windows of the same kind in the same zone share their borders, whatever their period is called.

// Border is where a window of a calendar begins.
type Border struct {
	Calendar Period // the built-in period
	Zone     string
	Date     string // the first date of the window that begins there: 2026-12-01
}

func (b Border) String() string { return string(b.Calendar) + " " + b.Zone + " " + b.Date }

// MaxShift is more than any border's two instants by two versions of a zone's rules differ, in ms.
const MaxShift = wholeDay

// Borders are those that were settled, as instants in Unix milliseconds.
type Borders interface {
	At(b Border) (ms int64, ok bool)
}

// By returns the rule with windows that start and end at settled borders, if there are any.
func (r *Rule) By(settled Borders) Rule {
	bound := *r
	bound.calendar.settled = settled
	return bound
}

// Zoned reports whether the rules of a time zone decide where windows start and end. All zones but
// UTC are taken to have rules that may change.
func (r *Rule) Zoned() bool {
	return r.every == 0 && r.end == 0 && r.of != AllTime && r.calendar.Zone() != "UTC"
}

// Borders returns the borders at which the window of that name starts and ends. ok is false unless the rule is Zoned.
func (r *Rule) Borders(name string) (start, end Border, ok bool) {
	if !r.Zoned() {
		return Border{}, Border{}, false
	}
	c := r.calendar
	d, err := c.parse(r.of, name)
	if err != nil {
		return Border{}, Border{}, false
	}
	first, next := c.stretch(r.of, d)
	return c.border(r.of, first), c.border(r.of, next), true
}

func (c Calendar) border(p Period, first day) Border {
	return Border{p, c.Zone(), first.text()}
}

// edge is where the window begins that starts with a date: as it was settled, else by the calendar.
func (c Calendar) edge(p Period, first day) int64 {
	if c.settled != nil {
		if ms, ok := c.settled.At(c.border(p, first)); ok {
			return ms
		}
	}
	return c.begin(first)
}

// ParseBorder reads what String writes.
func ParseBorder(text string) (b Border, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 3 {
		return Border{}, false
	}
	return Border{Period(words[0]), words[1], words[2]}, true
}
