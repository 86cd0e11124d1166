package periods

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// allTime is the only window of all-time.
var allTime = Window{Period: AllTime, Name: "all", Start: 0, End: MaxTime}

// name returns the name of the window that starts with this date. It depends only on the date: a Monday
// that a zone skipped still names its week. Weeks from Monday are named by ISO 8601, in which a week
// belongs to the year of its Thursday. Other weeks are named by their first day. The names of a period sort
// like its windows.
func (c Calendar) name(p Period, first day) string {
	t := first.utc()
	switch p {
	case Weekly:
		if c.first == 0 {
			year, week := t.ISOWeek()
			return fmt.Sprintf("%04d-W%02d", year, week)
		}
		return t.Format(time.DateOnly)
	case Monthly:
		return t.Format("2006-01")
	case Quarterly:
		return fmt.Sprintf("%04d-Q%d", t.Year(), (t.Month()+2)/3)
	case Yearly:
		return t.Format("2006")
	}
	return t.Format(time.DateOnly)
}

func (c Calendar) named(p Period, name string) (Window, error) {
	if p == AllTime {
		if name != allTime.Name {
			return Window{}, errors.New("use all")
		}
		return allTime, nil
	}
	d, err := c.parse(p, name)
	if err != nil {
		return Window{}, err
	}
	first, next := c.stretch(p, d)
	w := Window{p, c.name(p, first), c.edge(p, first), c.edge(p, next)}
	switch {
	case w.Name != name: // only the name of a week can be a date inside it
		return Window{}, fmt.Errorf("weeks start on %s: use %s", c.WeekStart(), w.Name)
	case w.End <= 0 || w.Start >= MaxTime:
		return Window{}, errors.New("windows are from 1970 to February 2106")
	case w.Start == w.End:
		return Window{}, fmt.Errorf("the day does not exist in %s because of a clock change", c.Zone())
	}
	return w, nil
}

// parse returns a date in the window with this name: the date that the name contains, or else a window's
// first one.
func (c Calendar) parse(p Period, name string) (day, error) {
	form, example := "0000-00-00", "2026-11-21"
	switch {
	case p == Weekly && c.first == 0:
		form, example = "0000-W00", "2026-W47"
	case p == Weekly:
		first, _ := c.stretch(Weekly, date(2026, time.November, 21))
		example = c.name(Weekly, first)
	case p == Monthly:
		form, example = "0000-00", "2026-11"
	case p == Quarterly:
		form, example = "0000-Q0", "2026-Q4"
	case p == Yearly:
		form, example = "0000", "2026"
	}
	if !hasForm(name, form) {
		if p == Weekly && c.first != 0 {
			return 0, fmt.Errorf("use the form %s, the date of the week's first day", example)
		}
		return 0, fmt.Errorf("use the form %s", example)
	}
	switch form {
	case "0000-W00":
		return isoWeek(number(name[:4]), number(name[6:]))
	case "0000-Q0":
		quarter := number(name[6:])
		if quarter < 1 || quarter > 4 {
			return 0, errors.New("use Q1 to Q4")
		}
		return date(number(name[:4]), time.Month(3*quarter), 1), nil
	}
	t, err := time.Parse(time.DateOnly[:len(form)], name)
	if err != nil { // the form is right, but a number is out of range
		return 0, errors.New("no such date")
	}
	return day(t.Unix() / secondsADay), nil
}

// isoWeek returns the Monday of an ISO 8601 week. Week 1 contains January 4.
func isoWeek(year, week int) (day, error) {
	_, last := date(year, time.December, 28).utc().ISOWeek() // December 28 is always in the last week
	if week < 1 || week > last {
		return 0, fmt.Errorf("use %04d-W01 to %04d-W%d", year, year, last)
	}
	fourth := date(year, time.January, 4)
	monday := fourth - day(Calendar{}.intoWeek(fourth))
	return monday + day(7*(week-1)), nil
}

// hasForm reports whether the name has the form's length, a digit for each 0, and otherwise the same bytes.
func hasForm(name, form string) bool {
	if len(name) != len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] == '0' {
			if name[i] < '0' || name[i] > '9' {
				return false
			}
		} else if name[i] != form[i] {
			return false
		}
	}
	return true
}

// number parses digits that hasForm has checked.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// quote quotes a user's input, shortened: it may be long.
func quote(given string) string {
	const most = 40
	if len(given) > most {
		return strconv.Quote(given[:most]) + "…"
	}
	return strconv.Quote(given)
}
