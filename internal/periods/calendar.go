package periods

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/zoneinfo"
)

// MaxTime is the end of the supported time in Unix ms: 2^32 seconds after 1970, which is
// 2106-02-07T06:28:16Z. Instants must be in [0, MaxTime).
const MaxTime = int64(1<<32) * 1000

// Window is one interval of a period: [Start, End) in Unix ms, both on whole seconds. A period's first
// window may start before 1970, and its last one may end after MaxTime.
type Window struct {
	Period Period
	Name   string
	Start  int64
	End    int64
}

// Calendar finds the window of an instant. The zero Calendar is the default one, with UTC and weeks from
// Monday. Its methods are safe for concurrent use.
type Calendar struct {
	loc   *time.Location // nil means UTC
	first int            // the first day of a week, in days after Monday
	// settled has the settled borders of windows; nil means none.
	settled Borders
}

var weekdays = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// NewCalendar returns the calendar of a time zone, by its IANA name, with weeks that start on the given
// weekday ("monday" to "sunday"). It loads the zone from package zoneinfo. It refuses names that mean
// different zones on different machines.
func NewCalendar(zone, weekStart string) (Calendar, error) {
	loc, err := load(zone)
	if err != nil {
		return Calendar{}, fmt.Errorf("time zone %s: %w", quote(zone), err)
	}
	return CalendarIn(loc, weekStart)
}

// CalendarIn returns the calendar of a loaded time zone.
func CalendarIn(loc *time.Location, weekStart string) (Calendar, error) {
	first := slices.Index(weekdays[:], weekStart)
	if first < 0 {
		return Calendar{}, fmt.Errorf("unknown first day of the week %s: use one of %s",
			quote(weekStart), strings.Join(weekdays[:], ", "))
	}
	return Calendar{loc: loc, first: first}, nil
}

func load(zone string) (*time.Location, error) {
	switch {
	case zone == "":
		return nil, errors.New("must be a name such as UTC or Europe/Berlin")
	case zone == "Local" || zone == "localtime" || zone == "posixrules":
		return nil, errors.New("differs between machines: use a name such as UTC or Europe/Berlin")
	case strings.HasPrefix(zone, "right/"):
		// Days in these zones start about 27 s early, because Unix time has no leap seconds.
		return nil, errors.New("counts leap seconds: use the name without right/")
	}
	loc, err := zoneinfo.Load(zone)
	if err != nil {
		return nil, fmt.Errorf("is not an IANA name such as UTC or Europe/Berlin: %w", err)
	}
	return loc, nil
}

// Zone returns the time zone's IANA name.
func (c Calendar) Zone() string { return c.location().String() }

// WeekStart returns the weekday that weeks start on, such as "monday".
func (c Calendar) WeekStart() string { return weekdays[c.first] }

func (c Calendar) location() *time.Location {
	if c.loc == nil {
		return time.UTC
	}
	return c.loc
}

// At returns the period's window that contains an instant, in Unix ms. It returns an error if the instant
// isn't in [0, MaxTime), or if the period doesn't exist.
func (c Calendar) At(p Period, ms int64) (Window, error) {
	if p.Length() == 0 {
		return Window{}, unknown(p)
	}
	if ms < 0 || ms >= MaxTime {
		return Window{}, fmt.Errorf("no %s window at %d ms: times are in [0, %d), from 1970 to 2106-02-07T06:28:16Z",
			p, ms, MaxTime)
	}
	if p == AllTime {
		return allTime, nil
	}
	first, next := c.stretch(p, c.shown(ms))
	start, end := c.edge(p, first), c.edge(p, next)
	for end <= ms { // the clock was turned back across the border, which counts once; or the border was settled earlier
		first, next = c.stretch(p, next)
		start, end = end, c.edge(p, next)
	}
	for ms < start { // the border was settled later
		first, _ = c.stretch(p, first-1)
		start, end = c.edge(p, first), start
	}
	return Window{p, c.name(p, first), start, end}, nil
}

// Span is an interval [Start, End) in Unix ms in which the windows of some periods don't change. It is
// within [0, MaxTime).
type Span struct {
	Start   int64
	End     int64
	Windows []Window // in the order in which the periods were given
}

// Holds reports whether an instant is in the span. If so, the span's windows contain the instant, and no
// calendar lookup is needed. The zero Span holds nothing.
func (s *Span) Holds(ms int64) bool { return s.Start <= ms && ms < s.End }
