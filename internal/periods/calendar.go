package periods

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/zoneinfo"
)

// MaxTime is the end of time, in Unix milliseconds: 2^32 seconds after 1970,
// which is 2106-02-07T06:28:16Z. Instants lie in [0, MaxTime).
const MaxTime = int64(1<<32) * 1000

// Window is one stretch of a period: [Start, End) in Unix milliseconds, both on
// whole seconds. The first window of a period may start before 1970, and the
// last one may end after MaxTime.
type Window struct {
	Period Period
	Name   string
	Start  int64
	End    int64
}

// Calendar determines which window an instant lies in. The zero Calendar is the
// default one: UTC, weeks from Monday. Its methods can be called at the same
// time.
type Calendar struct {
	loc   *time.Location // nil is UTC
	first int            // the first day of a week, in days after Monday
	// settled are the borders of windows that are known; nil: none.
	settled Borders
}

var weekdays = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// NewCalendar makes the calendar of a time zone, by its IANA name, and of the
// weekday that weeks start on ("monday" to "sunday"). The zone is of package
// zoneinfo's data. Names that mean another zone on another machine are refused.
func NewCalendar(zone, weekStart string) (Calendar, error) {
	loc, err := load(zone)
	if err != nil {
		return Calendar{}, fmt.Errorf("time zone %s: %w", quote(zone), err)
	}
	return CalendarIn(loc, weekStart)
}

// CalendarIn makes the calendar of a time zone that was loaded before.
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
		// Its days start some 27 s early: Unix time has no leap seconds.
		return nil, errors.New("counts leap seconds: use the name without right/")
	}
	loc, err := zoneinfo.Load(zone)
	if err != nil {
		return nil, fmt.Errorf("is not an IANA name such as UTC or Europe/Berlin: %w", err)
	}
	return loc, nil
}

// Zone is the time zone's IANA name.
func (c Calendar) Zone() string { return c.location().String() }

// WeekStart is the weekday that weeks start on, such as "monday".
func (c Calendar) WeekStart() string { return weekdays[c.first] }

func (c Calendar) location() *time.Location {
	if c.loc == nil {
		return time.UTC
	}
	return c.loc
}

// At is the period's window that holds an instant, in Unix milliseconds. It is
// an error if the instant isn't in [0, MaxTime) or there is no such period.
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
	for end <= ms { // the clock was turned back over the border: it is crossed once; or the border was settled earlier
		first, next = c.stretch(p, next)
		start, end = end, c.edge(p, next)
	}
	for ms < start { // the border was settled later
		first, _ = c.stretch(p, first-1)
		start, end = c.edge(p, first), start
	}
	return Window{p, c.name(p, first), start, end}, nil
}

// Previous is the window that ends where w starts. There is none before the one
// that holds 1970-01-01T00:00:00Z.
func (c Calendar) Previous(w Window) (Window, bool) {
	v, err := c.At(w.Period, w.Start-1)
	return v, err == nil
}

// Next is the window that starts where w ends. There is none after the one that
// holds the last instant before MaxTime.
func (c Calendar) Next(w Window) (Window, bool) {
	v, err := c.At(w.Period, w.End)
	return v, err == nil
}

// Span is a stretch [Start, End) in Unix milliseconds in which every one of some
// periods keeps its window. It never leaves [0, MaxTime).
type Span struct {
	Start   int64
	End     int64
	Windows []Window // in the order in which the periods were given
}

// Holds reports whether an instant lies in the span: if so, its windows are
// those of the instant, and the calendar needn't be asked. The zero Span holds
// nothing.
func (s *Span) Holds(ms int64) bool { return s.Start <= ms && ms < s.End }

// Span is the longest span around an instant, in Unix milliseconds. Errors are
// those of At.
func (c Calendar) Span(periods []Period, ms int64) (Span, error) {
	s := Span{Start: 0, End: MaxTime, Windows: make([]Window, 0, len(periods))}
	for _, p := range periods {
		w, err := c.At(p, ms)
		if err != nil {
			return Span{}, err
		}
		s.Start, s.End = max(s.Start, w.Start), min(s.End, w.End)
		s.Windows = append(s.Windows, w)
	}
	return s, nil
}
