// Package periods divides time into windows: it maps an instant, a calendar and a period to a window. It is
// pure: it has no clock and no state. Time zones come from package zoneinfo, and callers may pass borders
// that were settled before.
//
// A window is an interval [Start, End) of a period, named by the calendar of a time zone. One rule defines
// what a calendar date means if clocks change, and everything else follows from it:
//
//	A date begins at the first instant at which the local clock shows that
//	date or a later one.
//
// So the windows of a period have no gap and no overlap, whatever clocks do:
//
//	clock                      the window
//	00:00 is skipped           starts at 01:00, or whenever the clock continues
//	back over midnight         keeps the repeated hour, although the clock shows
//	                           the day before again
//	a whole date is skipped    doesn't exist, and its neighbours meet
package periods

import (
	"fmt"
	"strings"
	"time"
)

// Period is a rule that divides time into windows. Its text is its name in keys, in the API and in the
// configuration.
type Period string

// The built-in periods.
const (
	Daily     Period = "daily"     // 2026-11-21
	Weekly    Period = "weekly"    // 2026-W47, or the date of the first day
	Monthly   Period = "monthly"   // 2026-11
	Quarterly Period = "quarterly" // 2026-Q4
	Yearly    Period = "yearly"    // 2026
	AllTime   Period = "all-time"  // all
)

const (
	hours = time.Hour
	days  = 24 * time.Hour
)

// rules has the constants of each period, sorted by length.
var rules = [...]struct {
	period    Period
	length    time.Duration
	retention time.Duration
}{
	{Daily, 36 * hours, 14 * days},
	{Weekly, 180 * hours, 60 * days},
	{Monthly, 756 * hours, 400 * days},
	{Quarterly, 2220 * hours, 400 * days},
	{Yearly, 8796 * hours, 800 * days},
	{AllTime, (1 << 32) * time.Second, 800 * days},
}

// All returns the built-in periods, the shortest first.
func All() []Period {
	all := make([]Period, len(rules))
	for i, r := range rules {
		all[i] = r.period
	}
	return all
}

// Parse returns the period with this name, as it is written in keys. For other names the error lists the
// valid ones.
func Parse(name string) (Period, error) {
	p := Period(name)
	if p.Length() == 0 {
		return "", unknown(p)
	}
	return p, nil
}

func unknown(p Period) error {
	var names []string
	for _, r := range rules {
		names = append(names, string(r.period))
	}
	return fmt.Errorf("unknown period %s: use %s", quote(string(p)), strings.Join(names, ", "))
}

// Length is at least as long as any window of the period in any zone since 1970, including clock changes.
// For all-time it is the length of its only window. It never changes, because layouts are made for it. It
// is 0 for an unknown period.
func (p Period) Length() time.Duration {
	for _, r := range rules {
		if r.period == p {
			return r.length
		}
	}
	return 0
}

// Retention is how long after its end a window can be read, unless the configuration says otherwise.
// All-time ends only in 2106; its retention is that of a year, so that it too is above 0 and above the
// lateness. Retention is 0 for an unknown period.
func (p Period) Retention() time.Duration {
	for _, r := range rules {
		if r.period == p {
			return r.retention
		}
	}
	return 0
}
