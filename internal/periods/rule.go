package periods

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Rule is a period as it is configured: a name, and how it cuts time into windows. It is one
// of three kinds:
//
//	calendar   the windows of a built-in period, by a time zone and a week start of its own
//	season     one window, from a start to an end; its name is all
//	stretches  windows of equal length, one after the other from a start on; each is named by
//	           the time it starts at, in UTC: 2026-11-21, or 2026-11-21T0600Z where they don't
//	           all start at midnight, or 2026-11-21T060030Z
//
// Names have no colon, so that a key's parts can be told apart, and those of a period have one
// form, so that they sort as their windows do. Only ByCalendar, Season and Stretches make one.
// A Rule's methods can be called at the same time.
type Rule struct {
	name     Period
	of       Period // calendar: the built-in period
	calendar Calendar
	start    int64  // season and stretches: in Unix ms
	end      int64  // season
	every    int64  // stretches: in ms
	form     string // stretches: of their names
}

// Place is where an instant lies as to a period's windows.
type Place int

const (
	// Inside: a window holds it.
	Inside Place = iota
	// Before the first window: a season or stretches that begin later.
	Before
	// After the last window: a season that is over.
	After
)

// The forms of a stretch's name, the first that tells the starts of all of them.
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

// ByCalendar is a period that has the windows of a built-in one. Under a built-in period's
// name it can only be that.
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

// BuiltIn is a built-in period under its own name. There is a rule for each that All lists;
// any other is a fault of the caller, and panics.
func BuiltIn(p Period, c Calendar) Rule {
	r, err := ByCalendar(p, p, c)
	if err != nil {
		panic(err)
	}
	return r
}

// Season is a period of one window, [start, end) in Unix milliseconds, both on whole seconds
// in [0, MaxTime].
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

// Stretches is a period of windows that are all as long as every, the first of which starts at
// from, in Unix milliseconds in [0, MaxTime). Both are whole seconds, and every at least a
// minute.
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

// CheckName takes what reads well in a key and isn't built in: [a-z][a-z0-9-]{0,31}.
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

// Name is the period's name in keys and in the configuration.
func (r *Rule) Name() Period { return r.name }

// String says what kind of period it is, with all that decides which windows it has: the same
// text, the same windows.
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

// Length is at least as long as any window, and never changes: scores are laid out over it. Of
// a season and of stretches it is exact, as they are cut by no local clock.
func (r *Rule) Length() time.Duration {
	switch {
	case r.every != 0:
		return time.Duration(r.every) * time.Millisecond
	case r.end != 0:
		return time.Duration(r.end-r.start) * time.Millisecond
	}
	return r.of.Length()
}

// Retention is how long after its end a window can be read unless the configuration says
// otherwise: of a season and of stretches as of the shortest built-in period that is as long.
func (r *Rule) Retention() time.Duration {
	for _, p := range rules {
		if p.length >= r.Length() {
			return p.retention
		}
	}
	return AllTime.Retention()
}

// At is the window that holds an instant, in Unix milliseconds. If there is none, place says
// on which side the windows end. It is an error if the instant isn't in [0, MaxTime).
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

// Named is the window of that name. Only the form that windows are named in is taken; the
// error says which that is.
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
	if err != nil { // the form is right, so it is a number that isn't
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

// zeros is a digit's place in a form.
func zeros(c rune) rune {
	if c >= '0' && c <= '9' {
		return '0'
	}
	return c
}

// Previous is the window that ends where w starts. There is none before a season, before the
// first stretch, nor before the one that holds 1970-01-01T00:00:00Z.
func (r *Rule) Previous(w Window) (Window, bool) { return r.inside(w.Start - 1) }

// Next is the window that starts where w ends. There is none after a season, nor after the
// one that holds the last instant before MaxTime.
func (r *Rule) Next(w Window) (Window, bool) { return r.inside(w.End) }

// First is the first window, if there is one: the windows of a calendar go back for ever.
func (r *Rule) First() (Window, bool) {
	if r.every == 0 && r.end == 0 {
		return Window{}, false
	}
	return r.inside(r.start)
}

// Latest is the window that holds an instant, in Unix milliseconds, or the last one before it:
// a season that is over. There is none before the first. Errors are those of At.
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

// hold is the stretch around an instant in which At comes to the same.
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

// SpanOf is the longest span around an instant, in Unix milliseconds, in which every one of
// some periods keeps its window, or has none: that one's is the zero Window. Errors are those
// of At.
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
