package periods

import "time"

// day is a calendar date, as days since 1970-01-01. It is no instant: what is
// worked out on dates alone can't be led astray by clock changes. (time.Date in
// a zone can: for a midnight that was left out it may answer with the day
// before.)
type day int64

const secondsADay = 86_400

func date(year int, month time.Month, of int) day {
	return day(time.Date(year, month, of, 0, 0, 0, 0, time.UTC).Unix() / secondsADay)
}

// utc is the date's midnight in UTC, a zone where dates and instants agree.
func (d day) utc() time.Time { return time.Unix(int64(d)*secondsADay, 0).UTC() }

func (d day) text() string { return d.utc().Format(time.DateOnly) }

// shown is the date on the local clock at an instant.
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

// begin is the first instant, in Unix milliseconds, at which the local clock
// shows this date or a later one.
func (c Calendar) begin(d day) int64 {
	loc := c.location()
	midnight := int64(d) * secondsADay // as the local clock counts
	// No zone was ever more than a day off UTC, so two days before, no clock
	// shows this date. From there, go through the stretches of equal offset.
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

// evenUntil is an instant, in Unix seconds, up to which the offset stays as it
// is; it needn't change there. It never changes again if there is none.
func evenUntil(at time.Time) (end int64, ends bool) {
	_, bound := at.ZoneBounds()
	if bound.IsZero() {
		return 0, false
	}
	if bound.After(at) {
		return bound.Unix(), true
	}
	// Past the last change that a zone's data spell out, package time goes by a
	// rule for each year in UTC, and ends every year after 365 days (golang/go
	// issue 81583). So on the last day of a leap year the bound lies behind us; the
	// offset is right, and holds to the end of that day. Taken as it is, the bound
	// would send the search in a circle.
	return at.Unix() + secondsADay - at.Unix()%secondsADay, true
}

// stretch is the first date of the window that a date belongs to, and the first
// date of the one after it. All-time isn't cut by dates and has none.
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

// intoWeek is how many days the date lies after the first day of its week.
func (c Calendar) intoWeek(d day) int {
	afterMonday := int(d.utc().Weekday()+6) % 7
	return (afterMonday - c.first + 7) % 7
}
