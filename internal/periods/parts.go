package periods

import (
	"fmt"
	"time"
)

// Parts is all of a Rule except its name: rules with equal parts have equal windows. Only the parts of one
// kind are set. Times are Unix ms.
type Parts struct {
	Calendar  Period `json:"calendar,omitempty"` // the built-in period with the same windows
	Zone      string `json:"zone,omitempty"`
	WeekStart string `json:"week,omitempty"`
	Start     int64  `json:"start,omitempty"` // season
	End       int64  `json:"end,omitempty"`
	Every     int64  `json:"every,omitempty"` // stretches: length in ms
	From      int64  `json:"from,omitempty"`
}

// Parts returns the rule's parts.
func (r *Rule) Parts() Parts {
	switch {
	case r.every != 0:
		return Parts{Every: r.every, From: r.start}
	case r.end != 0:
		return Parts{Start: r.start, End: r.end}
	}
	return Parts{Calendar: r.of, Zone: r.calendar.Zone(), WeekStart: r.calendar.WeekStart()}
}

// Of returns the rule with the given parts. Its errors are those of the function for its kind.
func Of(name Period, p Parts) (Rule, error) {
	switch {
	case p.Every != 0 && p == Parts{Every: p.Every, From: p.From}:
		if p.Every < 0 || p.Every > MaxTime {
			return Rule{}, fmt.Errorf("period %s: length %d ms is out of range: 1m to %v", quote(string(name)), p.Every, AllTime.Length())
		}
		return Stretches(name, time.Duration(p.Every)*time.Millisecond, p.From)
	case p.End != 0 && p == Parts{Start: p.Start, End: p.End}:
		return Season(name, p.Start, p.End)
	case p.Calendar != "" && p == Parts{Calendar: p.Calendar, Zone: p.Zone, WeekStart: p.WeekStart}:
		c, err := NewCalendar(p.Zone, p.WeekStart)
		if err != nil {
			return Rule{}, fmt.Errorf("period %s: %w", quote(string(name)), err)
		}
		return ByCalendar(name, p.Calendar, c)
	}
	return Rule{}, fmt.Errorf("period %s: must be a calendar, a season or windows of equal length", quote(string(name)))
}
