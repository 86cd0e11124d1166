// Package periods cuts time into windows: an instant, a calendar and a period
// in, a window out. It is pure: no clock, no state. Time zones are package
// zoneinfo's, and borders between windows that were settled before are given to it.
//
// A window is a stretch [Start, End) of a period, named by the calendar of a
// time zone. What a calendar date means on a clock that can be turned is settled
// by one rule, which everything else here follows from:
//
//	A date begins at the first instant at which the local clock shows that
//	date or a later one.
//
// So the windows of a period tile time, whatever clocks do:
//
//	clock                      the window
//	00:00 is left out          starts at 01:00, or wherever the clock goes on
//	back over midnight         keeps the hour that comes a second time, though
//	                           the clock shows the day before once more
//	a whole date is left out   doesn't exist, and the ones beside it meet
package periods

import (
	"fmt"
	"strings"
	"time"
)

// Period is a rule that cuts time into windows. Its text is the name it has in
// keys, in the API and in the configuration.
type Period string

// The periods there are.
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

// rules holds what is fixed for each period, in the order of their lengths.
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

// All lists the periods, the shortest first.
func All() []Period {
	all := make([]Period, len(rules))
	for i, r := range rules {
		all[i] = r.period
	}
	return all
}

// Parse finds a period by its name, which is taken as it is written in keys. The
// error for any other lists the names there are.
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

// Length is longer than any window of the period in any zone since 1970, clock
// changes included (all-time: as long as its one window). It never changes, as
// scores are laid out over it. Zero for a period that doesn't exist.
func (p Period) Length() time.Duration {
	for _, r := range rules {
		if r.period == p {
			return r.length
		}
	}
	return 0
}

// Retention is how long after its end a window can be read unless the
// configuration says otherwise. The all-time window is kept by its end, in 2106;
// it has the retention of a year so that what holds for the others (a retention
// is more than nothing, and more than the lateness) holds for it too. Zero for a
// period that doesn't exist.
func (p Period) Retention() time.Duration {
	for _, r := range rules {
		if r.period == p {
			return r.retention
		}
	}
	return 0
}
