package periods

import "strings"

// Borders between windows, if time zone rules have changed since a window was opened.
//
// The rules of a time zone change, and processes may have different versions of them. So the start and end
// of a calendar window are settled once, outside this package, and a Rule can be bound to the settled
// borders. A border is the end of one window and the start of the next, so windows whose borders were
// settled by different versions have no gap and no overlap.
//
//	          settled      settled   by the calendar
//	             │            │            │
//	   2026-10   │  2026-11   │  2026-12   │  2027-01
//
// Windows of the same calendar period in the same zone share their borders, whatever their period's name
// is.

// Border is where a calendar window starts.
type Border struct {
	Calendar Period // the built-in period
	Zone     string
	Date     string // first date of the window that starts there: 2026-12-01
}

func (b Border) String() string { return string(b.Calendar) + " " + b.Zone + " " + b.Date }

// MaxShift is more, in ms, than the distance of a border's instants by two versions of a zone's rules.
const MaxShift = wholeDay

// Borders are settled borders, as instants in Unix ms.
type Borders interface {
	At(b Border) (ms int64, ok bool)
}

// By returns the rule with windows that start and end at settled borders, as far as there are any.
func (r *Rule) By(settled Borders) Rule {
	bound := *r
	bound.calendar.settled = settled
	return bound
}

// Zoned reports whether the windows depend on the rules of a time zone. The rules of all zones but UTC may
// change.
func (r *Rule) Zoned() bool {
	return r.every == 0 && r.end == 0 && r.of != AllTime && r.calendar.Zone() != "UTC"
}

// Borders returns the borders at which the window with this name starts and ends. ok is false unless the
// rule is Zoned.
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

// edge returns the instant at which a window starts, given its first date: the settled one, or else the
// calendar's.
func (c Calendar) edge(p Period, first day) int64 {
	if c.settled != nil {
		if ms, ok := c.settled.At(c.border(p, first)); ok {
			return ms
		}
	}
	return c.begin(first)
}

// ParseBorder parses what String writes.
func ParseBorder(text string) (b Border, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 3 {
		return Border{}, false
	}
	return Border{Period(words[0]), words[1], words[2]}, true
}
