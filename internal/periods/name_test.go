package periods_test

import (
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/periods"
)

func TestANameThatNoWindowHasIsRefusedWithWhatWouldBeRight(t *testing.T) {
	long := strings.Repeat("2026-W47", 100_000)
	for _, bad := range []struct {
		weekStart string
		period    periods.Period
		name      string
		says      string
	}{
		{"monday", periods.Daily, "", "use the form 2026-11-21"},
		{"monday", periods.Daily, "2026-11-1", "use the form 2026-11-21"},
		{"monday", periods.Daily, "2026-02-29", "no such date"},
		{"monday", periods.Daily, "2026-13-01", "no such date"},
		{"monday", periods.Daily, "2026-00-00", "no such date"},
		{"monday", periods.Weekly, "2026-47", "use the form 2026-W47"},
		{"monday", periods.Weekly, "2026-w47", "use the form 2026-W47"},
		{"monday", periods.Weekly, "2026-W7", "use the form 2026-W47"},
		{"monday", periods.Weekly, "2026-11-16", "use the form 2026-W47"},
		{"monday", periods.Weekly, "2026-W54", "use 2026-W01 to 2026-W53"},
		{"monday", periods.Weekly, "2025-W53", "use 2025-W01 to 2025-W52"},
		{"monday", periods.Weekly, "2026-W00", "use 2026-W01 to 2026-W53"},
		{"sunday", periods.Weekly, "2026-W47", "use the form 2026-11-15, the date of the week's first day"},
		{"sunday", periods.Weekly, "2026-11-16", "weeks start on sunday: use 2026-11-15"},
		{"monday", periods.Monthly, "2026-13", "no such date"},
		{"monday", periods.Monthly, "2026-00", "no such date"},
		{"monday", periods.Monthly, "2026-11-01", "use the form 2026-11"},
		{"monday", periods.Quarterly, "2026-Q0", "use Q1 to Q4"},
		{"monday", periods.Quarterly, "2026-Q5", "use Q1 to Q4"},
		{"monday", periods.Quarterly, "2026-4", "use the form 2026-Q4"},
		{"monday", periods.Yearly, "26", "use the form 2026"},
		{"monday", periods.Yearly, "+202", "use the form 2026"},
		{"monday", periods.Yearly, "２０２６", "use the form 2026"},
		{"monday", periods.Yearly, "1969", "from 1970 to February 2106"},
		{"monday", periods.Yearly, "2107", "from 1970 to February 2106"},
		{"monday", periods.Weekly, "0000-W01", "from 1970 to February 2106"},
		{"monday", periods.Daily, "1969-12-31", "from 1970 to February 2106"},
		{"monday", periods.Daily, "2106-02-08", "from 1970 to February 2106"},
		{"monday", periods.Daily, "9999-12-31", "from 1970 to February 2106"},
		{"monday", periods.AllTime, "2026", "use all"},
		{"monday", periods.AllTime, "", "use all"},
		{"monday", periods.Weekly, long, "use the form 2026-W47"},
		{"monday", periods.Weekly, "\xff\x00:{0}\r\n", "use the form 2026-W47"},
	} {
		r := periods.BuiltIn(bad.period, calendar(t, "UTC", bad.weekStart))
		_, err := r.Named(bad.name)
		if err == nil || !strings.HasSuffix(err.Error(), bad.says) || !strings.HasPrefix(err.Error(), "unknown "+string(bad.period)+" window") {
			t.Errorf("%s %.30q: got %v, want it to end in %q", bad.period, bad.name, err, bad.says)
		} else if len(err.Error()) > 250 {
			t.Errorf("%s %.30q: an error of %d bytes", bad.period, bad.name, len(err.Error()))
		}
	}
}

// FuzzNamed checks names: an accepted name is the name of the window found, and of the instants in it.
func FuzzNamed(f *testing.F) {
	zones := strings.Fields(zoneNames)
	for i, name := range []string{"2026-W47", "2026-11", "2026", "2026-11-21", "2026-Q4", "all", "2011-12-30", "1970-W01", "2106-02-07", ""} {
		f.Add(uint16(i*31), uint8(i), uint8(i), name)
	}
	f.Fuzz(func(t *testing.T, zone uint16, weekStart, period uint8, name string) {
		day := strings.ToLower(time.Weekday(weekStart % 7).String())
		c := calendar(t, zones[int(zone)%len(zones)], day)
		p := periods.All()[int(period)%len(periods.All())]
		r := periods.BuiltIn(p, c)
		w, err := r.Named(name)
		if err != nil {
			if w != (periods.Window{}) || len(err.Error()) > 400 {
				t.Errorf("%+v with an error of %d bytes", w, len(err.Error()))
			}
			return
		}
		if w.Name != name || w.Period != p || w.Start >= w.End || w.Start >= periods.MaxTime || w.End <= 0 {
			t.Errorf("%s %q is %+v", p, name, w)
		}
		for _, ms := range []int64{max(w.Start, 0), min(w.End, periods.MaxTime) - 1} {
			if at, err := c.At(p, ms); err != nil || at != w {
				t.Errorf("%s %q is %+v, but at %d it is %+v, %v", p, name, w, ms, at, err)
			}
		}
	})
}
