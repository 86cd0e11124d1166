package periods

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Rule is a configured period: a name, and how it divides time into windows. It is one of three kinds:
//
//	calendar   the windows of a built-in period, with its own time zone and week start
//	season     one window, from a start to an end; its name is all
//	stretches  consecutive windows of equal length from a start on; each is named by its
//	           start in UTC: 2026-11-21; or 2026-11-21T0600Z if some don't start at
//	           midnight; or 2026-11-21T060030Z if some don't start on a minute
//
// Names have no colon, so that a key can be split into its parts. The names of a period have one form, so
// that they sort like its windows. Only ByCalendar, Season and Stretches create a Rule. Its methods are
// safe for concurrent use.
type Rule struct {
	name     Period
	of       Period // calendar: the built-in period
	calendar Calendar
	start    int64  // season and stretches: in Unix ms
	end      int64  // season
	every    int64  // stretches: in ms
	form     string // stretches: format of their names
}

// Place is where an instant is, relative to a period's windows.
type Place int

const (
	// Inside means that a window contains the instant.
	Inside Place = iota
	// Before means that a season or stretches start after the instant.
	Before
	// After means that a season ended before the instant.
	After
)

// Formats of the names of stretches, the coarsest first. The first one that distinguishes all starts is
// used.
const (
	byDay    = "2006-01-02"
	byMinute = "2006-01-02T1504Z"
	bySecond = "2006-01-02T150405Z"
)

const (
	second    = int64(time.Second / time.Millisecond)
	minute    = 60 * second
	wholeDay  = secondsADay * second
	shortest  = minute // of a stretch
	seasonAll = "all"
)

// ByCalendar returns a period with the windows of a built-in one. A built-in period's name is allowed only
// for that period.
func ByCalendar(name, of Period, c Calendar) (Rule, error) {
	if of.Length() == 0 {
		return Rule{}, fmt.Errorf("period %s: %w", quote(string(name)), unknown(of))
	}
	if name != of {
		if err := CheckName(name); err != nil {
			return Rule{}, err
		}
	}
	return Rule{name: name, of: of, calendar: c}, nil
}

// BuiltIn returns a built-in period under its own name. It panics for periods that All doesn't return.
func BuiltIn(p Period, c Calendar) Rule {
	r, err := ByCalendar(p, p, c)
	if err != nil {
		panic(err)
	}
	return r
}

// Season returns a period with one window, [start, end) in Unix ms, both on whole seconds in [0, MaxTime].
func Season(name Period, start, end int64) (Rule, error) {
	if err := CheckName(name); err != nil {
		return Rule{}, err
	}
	switch {
	case start%second != 0 || end%second != 0:
		return Rule{}, fmt.Errorf("period %s: start and end must be whole seconds", name)
	case start < 0 || end > MaxTime:
		return Rule{}, fmt.Errorf("period %s: start and end must be between 1970 and 2106-02-07T06:28:16Z", name)
	case start >= end:
		return Rule{}, fmt.Errorf("period %s: end %s must be after start %s", name, rfc3339(end), rfc3339(start))
	}
	return Rule{name: name, start: start, end: end}, nil
}

// Stretches returns a period whose windows all have the length every; the first one starts at from, in Unix
// ms in [0, MaxTime). Both must be whole seconds, and every at least a minute.
func Stretches(name Period, every time.Duration, from int64) (Rule, error) {
	if err := CheckName(name); err != nil {
		return Rule{}, err
	}
	length := every.Milliseconds()
	switch {
	case every%time.Second != 0 || from%second != 0:
		return Rule{}, fmt.Errorf("period %s: from and every must be whole seconds", name)
	case length < shortest || length > MaxTime:
		return Rule{}, fmt.Errorf("period %s: every %v is out of range: 1m to %v", name, every, AllTime.Length())
	case from < 0 || from >= MaxTime:
		return Rule{}, fmt.Errorf("period %s: from must be between 1970 and 2106-02-07T06:28:16Z", name)
	}
	r := Rule{name: name, start: from, every: length}
	switch {
	case length%wholeDay == 0 && from%wholeDay == 0:
		r.form = byDay
	case length%minute == 0 && from%minute == 0:
		r.form = byMinute
	default:
		r.form = bySecond
	}
	return r, nil
}

// CheckName accepts names that match [a-z][a-z0-9-]{0,31} and aren't built in.
func CheckName(name Period) error {
	if name.Length() != 0 {
		return fmt.Errorf("period %s is built in: choose another name", name)
	}
	ok := len(name) > 0 && len(name) <= 32 && name[0] >= 'a' && name[0] <= 'z'
	for i := 1; i < len(name) && ok; i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	if !ok {
		return fmt.Errorf("period %s: a name must have 1 to 32 lower-case letters, digits and hyphens, and start with a letter", quote(string(name)))
	}
	return nil
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// Name returns the period's name in keys and in the configuration.
func (r *Rule) Name() Period { return r.name }

// String describes the kind of period and everything that determines its windows: equal texts mean equal
// windows.
func (r *Rule) String() string {
	switch {
	case r.every != 0:
		return fmt.Sprintf("every %v from %s", time.Duration(r.every)*time.Millisecond, rfc3339(r.start))
	case r.end != 0:
		return fmt.Sprintf("from %s to %s", rfc3339(r.start), rfc3339(r.end))
	case r.of == Weekly:
		return fmt.Sprintf("weekly in %s, from %s", r.calendar.Zone(), r.calendar.WeekStart())
	case r.of == AllTime:
		return string(AllTime)
	}
	return fmt.Sprintf("%s in %s", r.of, r.calendar.Zone())
}

// Length is at least as long as any window, and never changes, because layouts are made for it. For a
// season and for stretches it is exact, as they don't depend on a local clock.
func (r *Rule) Length() time.Duration {
	switch {
	case r.every != 0:
		return time.Duration(r.every) * time.Millisecond
	case r.end != 0:
		return time.Duration(r.end-r.start) * time.Millisecond
	}
	return r.of.Length()
}

// Retention is how long after its end a window can be read, unless the configuration says otherwise. For a
// season and for stretches it is that of the shortest built-in period with at least the same length.
func (r *Rule) Retention() time.Duration {
	for _, p := range rules {
		if p.length >= r.Length() {
			return p.retention
		}
	}
	return AllTime.Retention()
}

// At returns the window that contains an instant, in Unix ms. If there is no window, place tells whether
// the instant is before or after all windows. At returns an error if the instant isn't in [0, MaxTime).
func (r *Rule) At(ms int64) (w Window, place Place, err error) {
	if ms < 0 || ms >= MaxTime {
		return Window{}, 0, fmt.Errorf("no %s window at %d ms: times are in [0, %d), from 1970 to 2106-02-07T06:28:16Z",
			r.name, ms, MaxTime)
	}
	switch {
	case r.every == 0 && r.end == 0:
		if w, err = r.calendar.At(r.of, ms); err != nil {
			return Window{}, 0, err
		}
		w.Period = r.name
		return w, Inside, nil
	case ms < r.start:
		return Window{}, Before, nil
	case r.every != 0:
		return r.stretch((ms - r.start) / r.every), Inside, nil
	case ms >= r.end:
		return Window{}, After, nil
	}
	return Window{r.name, seasonAll, r.start, r.end}, Inside, nil
}

func (r *Rule) stretch(n int64) Window {
	start := r.start + n*r.every
	return Window{r.name, time.UnixMilli(start).UTC().Format(r.form), start, start + r.every}
}

// Named returns the window with this name. A name in another form is an error, which shows the correct
// form.
func (r *Rule) Named(name string) (Window, error) {
	w, err := r.named(name)
	if err != nil {
		return Window{}, fmt.Errorf("unknown %s window %s: %w", r.name, quote(name), err)
	}
	w.Period = r.name
	return w, nil
}

func (r *Rule) named(name string) (Window, error) {
	switch {
	case r.every == 0 && r.end == 0:
		return r.calendar.named(r.of, name)
	case r.every == 0:
		if name != seasonAll {
			return Window{}, errors.New("use all")
		}
		return Window{r.name, seasonAll, r.start, r.end}, nil
	}
	if !hasForm(name, strings.Map(zeros, r.form)) {
		return Window{}, fmt.Errorf("use the form %s, the start", r.stretch(0).Name)
	}
	t, err := time.Parse(r.form, name)
	if err != nil { // the form is right, but a number is out of range
		return Window{}, errors.New("no such date")
	}
	at := t.UnixMilli()
	if at < r.start || at >= MaxTime {
		return Window{}, fmt.Errorf("windows start between %s and February 2106", r.stretch(0).Name)
	}
	if w := r.stretch((at - r.start) / r.every); w.Start != at {
		return Window{}, fmt.Errorf("no window starts then: use %s", w.Name)
	}
	return r.stretch((at - r.start) / r.every), nil
}

// zeros replaces a digit of a format by 0.
func zeros(c rune) rune {
	if c >= '0' && c <= '9' {
		return '0'
	}
	return c
}

// Previous returns the window that ends where w starts. ok is false for a season, for the first stretch,
// and for the window that contains 1970-01-01T00:00:00Z.
func (r *Rule) Previous(w Window) (Window, bool) { return r.inside(w.Start - 1) }

// Next returns the window that starts where w ends. ok is false for a season, and for the window that
// contains the last instant before MaxTime.
func (r *Rule) Next(w Window) (Window, bool) { return r.inside(w.End) }

// First returns the first window. ok is false for a calendar, which has no first window.
func (r *Rule) First() (Window, bool) {
	if r.every == 0 && r.end == 0 {
		return Window{}, false
	}
	return r.inside(r.start)
}

// Latest returns the window that contains an instant, in Unix ms, or the last one before it if a season is
// over. ok is false before the first window. Its errors are those of At.
func (r *Rule) Latest(ms int64) (w Window, ok bool, err error) {
	w, place, err := r.At(ms)
	if err == nil && place == After {
		w, place, err = r.At(r.end - 1)
	}
	return w, err == nil && place == Inside, err
}

func (r *Rule) inside(ms int64) (Window, bool) {
	w, place, err := r.At(ms)
	return w, err == nil && place == Inside
}

// hold returns the interval around an instant in which At returns the same result.
func (r *Rule) hold(ms int64) (start, end int64, w Window, err error) {
	w, place, err := r.At(ms)
	switch {
	case err != nil:
		return 0, 0, Window{}, err
	case place == Before:
		return 0, r.start, w, nil
	case place == After:
		return r.end, MaxTime, w, nil
	}
	return w.Start, w.End, w, nil
}

// SpanOf returns the longest span around an instant, in Unix ms, in which each of some periods keeps its
// window, or has none: then its window is the zero Window. Its errors are those of At.
func SpanOf(periods []Rule, ms int64) (Span, error) {
	s := Span{Start: 0, End: MaxTime, Windows: make([]Window, 0, len(periods))}
	for i := range periods {
		start, end, w, err := periods[i].hold(ms)
		if err != nil {
			return Span{}, err
		}
		s.Start, s.End = max(s.Start, start), min(s.End, end)
		s.Windows = append(s.Windows, w)
	}
	return s, nil
}
