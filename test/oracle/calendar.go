package oracle

// Calendar windows. A date begins at the first instant at which the local clock shows that date or a later
// one; the oracle finds that instant by trying clock times.

import (
	"fmt"
	"time"
)

type window struct {
	period     Period
	name       string
	start, end int64 // Unix ms
}

// window returns the window of a period that contains an instant: always the same pointer for the same window.
// It tries the most recently used windows first.
func (o *Oracle) window(p Period, at int64) *window {
	known := o.windows[p.Name]
	for i, w := range known {
		if w.start <= at && at < w.end {
			known[0], known[i] = known[i], known[0]
			return w
		}
	}
	w := o.config.cut(p, at)
	o.windows[p.Name] = append(known, w)
	return w
}

func (c Config) cut(p Period, at int64) *window {
	switch {
	case p.Every > 0:
		w := &window{period: p, start: p.Start}
		w.start += (at - p.Start) / p.Every * p.Every
		w.end = w.start + p.Every
		w.name = stretchName(p, time.UnixMilli(w.start).UTC())
		return w
	case p.End > 0:
		return &window{period: p, name: "all", start: p.Start, end: p.End}
	case p.Calendar != "":
		if p.Zone != nil {
			c.Zone = p.Zone
		}
		if p.WeekStart != nil {
			c.WeekStart = *p.WeekStart
		}
		as := p
		as.Name, as.Calendar = p.Calendar, ""
		w := c.cut(as, at)
		w.period = p
		return w
	}
	if p.Name == "all-time" {
		return &window{period: p, name: "all", start: 0, end: endOfTime}
	}
	year, month, day := time.UnixMilli(at).In(c.Zone).Date()
	// If the clock shows the day before once more, the loop continues to the next window.
	if c.Borders != nil {
		day-- // a fixed border may be later than the clock's
	}
	for date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); ; date = date.AddDate(0, 0, 1) {
		first, next := c.stretch(p.Name, date)
		w := &window{period: p, name: c.name(p.Name, first), start: c.border(p.Name, first), end: c.border(p.Name, next)}
		if at < w.end {
			if at < w.start {
				panic(fmt.Sprintf("oracle: %d ms lies before %+v", at, w))
			}
			return w
		}
	}
}

// stretchName uses the day if all windows start at midnight, and otherwise the minute or the second.
func stretchName(p Period, start time.Time) string {
	const minute, day = 60_000, 86_400_000
	switch {
	case p.Every%day == 0 && p.Start%day == 0:
		return start.Format("2006-01-02")
	case p.Every%minute == 0 && p.Start%minute == 0:
		return start.Format("2006-01-02T1504Z")
	}
	return start.Format("2006-01-02T150405Z")
}

// stretch returns the first date of the window that contains a date, and the first date of the next window.
func (c Config) stretch(period string, date time.Time) (first, next time.Time) {
	y, m, d := date.Date()
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	switch period {
	case "daily":
		return date, day(y, m, d+1)
	case "weekly":
		for date.Weekday() != c.WeekStart {
			date = date.AddDate(0, 0, -1)
		}
		return date, date.AddDate(0, 0, 7)
	case "monthly":
		return day(y, m, 1), day(y, m+1, 1)
	case "quarterly":
		for m != time.January && m != time.April && m != time.July && m != time.October {
			m--
		}
		return day(y, m, 1), day(y, m+3, 1)
	case "yearly":
		return day(y, time.January, 1), day(y+1, time.January, 1)
	}
	panic("oracle: no such period: " + period)
}

func (c Config) name(period string, first time.Time) string {
	switch {
	case period == "weekly" && c.WeekStart == time.Monday:
		year, week := first.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	case period == "monthly":
		return first.Format("2006-01")
	case period == "quarterly":
		return fmt.Sprintf("%04d-Q%d", first.Year(), (int(first.Month())+2)/3)
	case period == "yearly":
		return first.Format("2006")
	}
	return first.Format("2006-01-02")
}

// border returns where the window that starts with a date begins, in Unix ms.
func (c Config) border(period string, first time.Time) int64 {
	if at, ok := c.Borders[fmt.Sprintf("%s %s %s", period, c.Zone, first.Format("2006-01-02"))]; ok {
		return at
	}
	return c.begins(first)
}

// begins returns the first instant, in Unix ms, at which the local clock shows the date or a later one.
func (c Config) begins(date time.Time) int64 {
	shows := func(t time.Time) bool {
		y, m, d := t.In(c.Zone).Date()
		return !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(date)
	}
	t := date.Add(-26 * time.Hour) // no clock is that far ahead of UTC
	for !shows(t) {
		t = t.Add(time.Hour)
	}
	for t = t.Add(-time.Hour); !shows(t); {
		t = t.Add(time.Second)
	}
	return t.UnixMilli()
}
