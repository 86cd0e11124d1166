package periods

import "time"

// day is a calendar date, as days since 1970-01-01. It isn't an instant, so clock changes don't affect
// arithmetic with dates. (They do affect time.Date in a zone: for a midnight that a clock change skips, it
// may return the day before.)
type day int64

const secondsADay = 86_400

func date(year int, month time.Month, of int) day {
	return day(time.Date(year, month, of, 0, 0, 0, 0, time.UTC).Unix() / secondsADay)
}

// utc returns the date's midnight in UTC, where every day has 24 hours.
func (d day) utc() time.Time { return time.Unix(int64(d)*secondsADay, 0).UTC() }

func (d day) text() string { return d.utc().Format(time.DateOnly) }

// shown returns the date that the local clock shows at an instant.
func (c Calendar) shown(ms int64) day {
	at := time.UnixMilli(ms)
	_, offset := at.In(c.location()).Zone()
	local := at.Unix() + int64(offset)
	d := local / secondsADay
	if local%secondsADay < 0 {
		d--
	}
	return day(d)
}

// begin returns the first instant, in Unix ms, at which the local clock shows this date or a later one.
func (c Calendar) begin(d day) int64 {
	loc := c.location()
	midnight := int64(d) * secondsADay // in seconds of the local clock
	// No zone was ever more than a day off UTC, so two days before midnight no clock shows this date. Start
	// there, and go through the intervals of constant offset.
	t := midnight - 2*secondsADay
	for {
		at := time.Unix(t, 0).In(loc)
		_, offset := at.Zone()
		first := max(t, midnight-int64(offset))
		end, ends := evenUntil(at)
		if !ends || first < end {
			return first * 1000
		}
		t = end
	}
}

// evenUntil returns an instant, in Unix seconds, up to which the offset doesn't change; it may also stay
// the same there. ends is false if the offset never changes again.
func evenUntil(at time.Time) (end int64, ends bool) {
	_, bound := at.ZoneBounds()
	if bound.IsZero() {
		return 0, false
	}
	if bound.After(at) {
		return bound.Unix(), true
	}
	// After the last change in a zone's data, package time applies a rule for each year in UTC, and it ends
	// every year after 365 days (golang/go issue 81583). So on the last day of a leap year the bound is in
	// the past. The offset is correct, and is valid until the end of that day. With the bound of package
	// time the search would loop for ever.
	return at.Unix() + secondsADay - at.Unix()%secondsADay, true
}

// stretch returns the first date of the window that contains a date, and the first date of the next window.
// All-time has no such dates.
func (c Calendar) stretch(p Period, d day) (first, next day) {
	if p == Daily {
		return d, d + 1
	}
	if p == Weekly {
		first = d - day(c.intoWeek(d))
		return first, first + 7
	}
	year, month, _ := d.utc().Date()
	months := 1
	switch p {
	case Quarterly:
		months = 3
	case Yearly:
		months = 12
	}
	month -= (month - 1) % time.Month(months)
	return date(year, month, 1), date(year, month+time.Month(months), 1)
}

// intoWeek returns how many days the date is after the first day of its week.
func (c Calendar) intoWeek(d day) int {
	afterMonday := int(d.utc().Weekday()+6) % 7
	return (afterMonday - c.first + 7) % 7
}
