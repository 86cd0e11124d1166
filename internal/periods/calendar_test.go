package periods_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/periods"
)

func TestWindowsAreNamedAndBoundedAsTheCalendarHasIt(t *testing.T) {
	for _, want := range []struct {
		zone, weekStart string
		period          periods.Period
		at              string
		name            string
		start, end      string
	}{
		// The periods.
		{"UTC", "monday", periods.Daily, "2026-11-21T08:15:30Z", "2026-11-21", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"UTC", "monday", periods.Weekly, "2026-11-21T08:15:30Z", "2026-W47", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"UTC", "monday", periods.Monthly, "2026-11-21T08:15:30Z", "2026-11", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"UTC", "monday", periods.Quarterly, "2026-11-21T08:15:30Z", "2026-Q4", "2026-10-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"UTC", "monday", periods.Yearly, "2026-11-21T08:15:30Z", "2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"UTC", "monday", periods.AllTime, "2026-11-21T08:15:30Z", "all", "1970-01-01T00:00:00Z", "2106-02-07T06:28:16Z"},
		// The first and the last supported instants.
		{"UTC", "monday", periods.Weekly, "1970-01-01T00:00:00Z", "1970-W01", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{"America/New_York", "monday", periods.Yearly, "1970-01-01T00:00:00Z", "1969", "1969-01-01T05:00:00Z", "1970-01-01T05:00:00Z"},
		{"UTC", "monday", periods.Yearly, "2106-02-07T06:28:15.999Z", "2106", "2106-01-01T00:00:00Z", "2107-01-01T00:00:00Z"},
		// ISO 8601 at the turn of the year.
		{"UTC", "monday", periods.Weekly, "2020-12-31T12:00:00Z", "2020-W53", "2020-12-28T00:00:00Z", "2021-01-04T00:00:00Z"},
		{"UTC", "monday", periods.Weekly, "2021-01-01T12:00:00Z", "2020-W53", "2020-12-28T00:00:00Z", "2021-01-04T00:00:00Z"},
		{"UTC", "monday", periods.Weekly, "2024-12-30T00:00:00Z", "2025-W01", "2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z"},
		{"UTC", "monday", periods.Weekly, "2027-01-01T00:00:00Z", "2026-W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		// Weeks that start on another day.
		{"UTC", "sunday", periods.Weekly, "2026-11-21T08:15:30Z", "2026-11-15", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"UTC", "saturday", periods.Weekly, "2026-11-21T08:15:30Z", "2026-11-21", "2026-11-21T00:00:00Z", "2026-11-28T00:00:00Z"},
		// A week with a clock change: 167 and 169 hours.
		{"Europe/Berlin", "monday", periods.Weekly, "2026-03-29T12:00:00Z", "2026-W13", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", "monday", periods.Weekly, "2026-10-25T12:00:00Z", "2026-W43", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		// Midnight is skipped: the day starts at 01:00.
		{"America/Sao_Paulo", "monday", periods.Daily, "2018-11-04T12:00:00Z", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"Asia/Beirut", "monday", periods.Daily, "2022-03-27T12:00:00Z", "2022-03-27", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},
		{"Africa/Cairo", "monday", periods.Daily, "2024-04-26T12:00:00Z", "2024-04-26", "2024-04-25T22:00:00Z", "2024-04-26T21:00:00Z"},
		// The clock goes from 24:00 back to 23:00: it didn't show the next date yet, and the day has 25
		// hours.
		{"America/Sao_Paulo", "monday", periods.Daily, "2019-02-17T02:30:00Z", "2019-02-16", "2019-02-16T02:00:00Z", "2019-02-17T03:00:00Z"},
		// The clock goes from 00:01 back to 23:01: it has shown the new date, which keeps the following
		// hour.
		{"America/St_Johns", "monday", periods.Daily, "2010-11-07T03:00:00Z", "2010-11-07", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"America/St_Johns", "monday", periods.Daily, "2010-11-07T02:29:59.999Z", "2010-11-06", "2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z"},
		// A day is skipped.
		{"Pacific/Apia", "monday", periods.Daily, "2011-12-30T09:59:59.999Z", "2011-12-29", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", "monday", periods.Daily, "2011-12-30T10:00:00Z", "2011-12-31", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"Pacific/Kwajalein", "monday", periods.Daily, "1993-08-21T12:00:00Z", "1993-08-22", "1993-08-21T12:00:00Z", "1993-08-22T12:00:00Z"},
		// A week whose first day was skipped is still named by it.
		{"Pacific/Apia", "friday", periods.Weekly, "2011-12-31T12:00:00Z", "2011-12-30", "2011-12-30T10:00:00Z", "2012-01-05T10:00:00Z"},
		// Odd offsets.
		{"Africa/Monrovia", "monday", periods.Daily, "1971-06-01T12:00:00Z", "1971-06-01", "1971-06-01T00:44:30Z", "1971-06-02T00:44:30Z"},
		{"Africa/Monrovia", "monday", periods.Daily, "1972-01-07T12:00:00Z", "1972-01-07", "1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z"},
		{"Asia/Kathmandu", "monday", periods.Monthly, "2026-11-21T00:00:00Z", "2026-11", "2026-10-31T18:15:00Z", "2026-11-30T18:15:00Z"},
		{"Antarctica/Troll", "monday", periods.Daily, "2024-03-31T12:00:00Z", "2024-03-31", "2024-03-31T00:00:00Z", "2024-03-31T22:00:00Z"},
		// The last day of a leap year, after the last change in the zone's data.
		{"Europe/Berlin", "monday", periods.Yearly, "2104-12-31T22:59:59.999Z", "2104", "2103-12-31T23:00:00Z", "2104-12-31T23:00:00Z"},
	} {
		got, err := calendar(t, want.zone, want.weekStart).At(want.period, instant(t, want.at))
		if err != nil {
			t.Errorf("%s at %s: %v", want.period, want.at, err)
			continue
		}
		if got.Period != want.period || got.Name != want.name || utc(got.Start) != want.start || utc(got.End) != want.end {
			t.Errorf("%s, weeks from %s, %s at %s: got %s %s [%s, %s), want %s [%s, %s)", want.zone, want.weekStart,
				want.period, want.at, got.Period, got.Name, utc(got.Start), utc(got.End), want.name, want.start, want.end)
		}
	}
}

func TestTheDefaultCalendarIsUTCWithWeeksFromMonday(t *testing.T) {
	var zero periods.Calendar
	if zero.Zone() != "UTC" || zero.WeekStart() != "monday" {
		t.Errorf("got %s, %s", zero.Zone(), zero.WeekStart())
	}
	given := calendar(t, "UTC", "monday")
	for _, p := range periods.All() {
		got, err := zero.At(p, 1795248930123)
		want, _ := given.At(p, 1795248930123)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", p, got, err, want)
		}
	}
}

func TestAZoneOrWeekStartThatWontDoIsRefusedWithWhatWould(t *testing.T) {
	for _, bad := range []struct{ zone, weekStart, says string }{
		{"", "monday", "must be a name such as UTC or Europe/Berlin"},
		{"Local", "monday", "differs between machines"},
		{"localtime", "monday", "differs between machines"},
		{"right/Europe/Berlin", "monday", "counts leap seconds"},
		{"Europe/Berlni", "monday", "unknown time zone Europe/Berlni"},
		{"Europe", "monday", `time zone "Europe"`},
		{"../../etc/passwd", "monday", "is not an IANA name"},
		{"/etc/localtime", "monday", "is not an IANA name"},
		{"UTC\x00", "monday", "is not an IANA name"},
		{"UTC", "", `unknown first day of the week "": use one of monday, tuesday`},
		{"UTC", "Monday", `unknown first day of the week "Monday"`},
	} {
		_, err := periods.NewCalendar(bad.zone, bad.weekStart)
		if err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("zone %q, weeks from %q: got %v, want it to say %q", bad.zone, bad.weekStart, err, bad.says)
		}
	}
}

func TestBeforeTheFirstWindowAndAfterTheLastThereIsNone(t *testing.T) {
	for _, zone := range []string{"UTC", "Asia/Tokyo", "America/New_York"} {
		c := calendar(t, zone, "monday")
		for _, p := range periods.All() {
			r := periods.BuiltIn(p, c)
			first, _ := c.At(p, 0)
			if w, ok := r.Previous(first); ok {
				t.Errorf("%s: before %+v there is %+v", zone, first, w)
			}
			last, _ := c.At(p, periods.MaxTime-1)
			if w, ok := r.Next(last); ok {
				t.Errorf("%s: after %+v there is %+v", zone, last, w)
			}
		}
	}
}

func TestADayThatWasLeftOutHasNeitherWindowNorName(t *testing.T) {
	for _, gone := range []struct{ zone, before, day, after string }{
		{"Pacific/Apia", "2011-12-29", "2011-12-30", "2011-12-31"},
		{"Pacific/Fakaofo", "2011-12-29", "2011-12-30", "2011-12-31"},
		{"Pacific/Kwajalein", "1993-08-20", "1993-08-21", "1993-08-22"},
	} {
		r := periods.BuiltIn(periods.Daily, calendar(t, gone.zone, "monday"))
		before, err := r.Named(gone.before)
		require.NoError(t, err)
		after, ok := r.Next(before)
		if !ok || after.Name != gone.after || after.Start != before.End {
			t.Errorf("%s: after %+v comes %+v", gone.zone, before, after)
		}
		if w, ok := r.Previous(after); !ok || w != before {
			t.Errorf("%s: before %+v comes %+v", gone.zone, after, w)
		}
		_, err = r.Named(gone.day)
		if err == nil || !strings.Contains(err.Error(), "does not exist in "+gone.zone) {
			t.Errorf("%s %s: got %v", gone.zone, gone.day, err)
		}
	}
}
