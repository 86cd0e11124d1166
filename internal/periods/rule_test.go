package periods_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/periods"
)

func byCalendar(t testing.TB, name, of periods.Period, zone, weekStart string) periods.Rule {
	t.Helper()
	r, err := periods.ByCalendar(name, of, calendar(t, zone, weekStart))
	require.NoError(t, err)
	return r
}

func season(t testing.TB, name periods.Period, start, end string) periods.Rule {
	t.Helper()
	r, err := periods.Season(name, instant(t, start), instant(t, end))
	require.NoError(t, err)
	return r
}

func stretches(t testing.TB, name periods.Period, every time.Duration, from string) periods.Rule {
	t.Helper()
	r, err := periods.Stretches(name, every, instant(t, from))
	require.NoError(t, err)
	return r
}

// ExampleSpanOf shows a board with a season. Before the season, the board has only a week.
func ExampleSpanOf() {
	weekly, _ := periods.ByCalendar("weekly", periods.Weekly, periods.Calendar{})
	start, end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	season, _ := periods.Season("season-4", start.UnixMilli(), end.UnixMilli())
	for _, at := range []time.Time{start.Add(-time.Second), start} {
		span, _ := periods.SpanOf([]periods.Rule{weekly, season}, at.UnixMilli())
		for _, w := range span.Windows {
			fmt.Printf("%q ", w.Name)
		}
		fmt.Println("at", at.Format(time.DateTime))
	}
	// Output:
	// "2026-W49" "" at 2026-11-30 23:59:59
	// "2026-W49" "all" at 2026-12-01 00:00:00
}

func TestEachKindOfPeriodHasItsWindows(t *testing.T) {
	sprint := stretches(t, "sprint", 72*time.Hour, "2026-01-01T00:00:00Z")
	shift := stretches(t, "shift", 8*time.Hour, "2026-01-01T06:00:00Z")
	morning := stretches(t, "morning", 24*time.Hour, "2026-01-01T06:00:00Z")
	odd := stretches(t, "odd", 61*time.Second, "2026-01-01T00:00:07Z")
	four := season(t, "season-4", "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z")
	us := byCalendar(t, "weekly-us", periods.Weekly, "America/New_York", "sunday")
	for _, c := range []struct {
		rule       periods.Rule
		at         string
		place      periods.Place
		name       string
		start, end string
	}{
		{us, "2026-11-21T08:15:30Z", periods.Inside, "2026-11-15", "2026-11-15T05:00:00Z", "2026-11-22T05:00:00Z"},
		{four, "2026-11-30T23:59:59.999Z", periods.Before, "", "", ""},
		{four, "2026-12-01T00:00:00Z", periods.Inside, "all", "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"},
		{four, "2027-02-28T23:59:59.999Z", periods.Inside, "all", "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"},
		{four, "2027-03-01T00:00:00Z", periods.After, "", "", ""},
		{sprint, "2025-12-31T23:59:59.999Z", periods.Before, "", "", ""},
		{sprint, "2026-01-01T00:00:00Z", periods.Inside, "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{sprint, "2026-01-03T23:59:59.999Z", periods.Inside, "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{sprint, "2026-01-04T00:00:00Z", periods.Inside, "2026-01-04", "2026-01-04T00:00:00Z", "2026-01-07T00:00:00Z"},
		{shift, "2026-01-01T06:00:00Z", periods.Inside, "2026-01-01T0600Z", "2026-01-01T06:00:00Z", "2026-01-01T14:00:00Z"},
		{shift, "2026-11-21T08:15:30Z", periods.Inside, "2026-11-21T0600Z", "2026-11-21T06:00:00Z", "2026-11-21T14:00:00Z"},
		{morning, "2026-11-21T05:59:59.999Z", periods.Inside, "2026-11-20T0600Z", "2026-11-20T06:00:00Z", "2026-11-21T06:00:00Z"},
		{odd, "2026-01-01T00:01:08Z", periods.Inside, "2026-01-01T000108Z", "2026-01-01T00:01:08Z", "2026-01-01T00:02:09Z"},
	} {
		w, place, err := c.rule.At(instant(t, c.at))
		if err != nil || place != c.place {
			t.Errorf("%s at %s: %+v, %d, %v", c.rule.Name(), c.at, w, place, err)
			continue
		}
		if place != periods.Inside {
			if w != (periods.Window{}) {
				t.Errorf("%s at %s is in %+v", c.rule.Name(), c.at, w)
			}
			continue
		}
		if w.Period != c.rule.Name() || w.Name != c.name || utc(w.Start) != c.start || utc(w.End) != c.end {
			t.Errorf("%s at %s: got %+v [%s, %s), want %s [%s, %s)", c.rule.Name(), c.at, w, utc(w.Start), utc(w.End), c.name, c.start, c.end)
		}
	}
}

func TestPeriodsHaveTheLengthsAndRetentionsOfTheirKind(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		rule      periods.Rule
		length    time.Duration
		retention time.Duration
		says      string
	}{
		{byCalendar(t, "weekly-us", periods.Weekly, "America/New_York", "sunday"), 180 * time.Hour, 60 * day, "weekly in America/New_York, from sunday"},
		{byCalendar(t, "monthly", periods.Monthly, "UTC", "monday"), 756 * time.Hour, 400 * day, "monthly in UTC"},
		{byCalendar(t, "ever", periods.AllTime, "UTC", "monday"), 1 << 32 * time.Second, 800 * day, "all-time"},
		{season(t, "season-4", "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"), 90 * day, 400 * day, "from 2026-12-01T00:00:00Z to 2027-03-01T00:00:00Z"},
		{stretches(t, "sprint", 72*time.Hour, "2026-01-01T00:00:00Z"), 72 * time.Hour, 60 * day, "every 72h0m0s from 2026-01-01T00:00:00Z"},
		{stretches(t, "shift", 8*time.Hour, "2026-01-01T06:00:00Z"), 8 * time.Hour, 14 * day, "every 8h0m0s from 2026-01-01T06:00:00Z"},
		{stretches(t, "age", 1<<32*time.Second, "1970-01-01T00:00:00Z"), 1 << 32 * time.Second, 800 * day, "every 1193046h28m16s from 1970-01-01T00:00:00Z"},
	} {
		r := c.rule
		if r.Length() != c.length || r.Retention() != c.retention || r.String() != c.says {
			t.Errorf("%s is %v long, kept for %v, %q; want %v, %v, %q", r.Name(), r.Length(), r.Retention(), r.String(), c.length, c.retention, c.says)
		}
	}
}

func TestAPeriodThatCantBeIsRefusedWithWhatCould(t *testing.T) {
	const from, hour = 1_800_000_000_000, 3_600_000
	seasonOf := func(name periods.Period, start, end int64) error {
		r, err := periods.Season(name, start, end)
		if (r == periods.Rule{}) != (err != nil) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		return err
	}
	stretchesOf := func(name periods.Period, every time.Duration, from int64) error {
		r, err := periods.Stretches(name, every, from)
		if (r == periods.Rule{}) != (err != nil) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		return err
	}
	calendarOf := func(name, of periods.Period) error {
		_, err := periods.ByCalendar(name, of, periods.Calendar{})
		return err
	}
	for says, err := range map[string]error{
		"is built in: choose another name": seasonOf("weekly", from, from+hour),
		"period all-time is built in":      stretchesOf("all-time", time.Hour, from),
		"period daily is built in":         calendarOf("daily", periods.Weekly),
		`period "": a name must have 1 to 32 lower-case letters, digits and hyphens`: seasonOf("", from, from+hour),
		`period "4th": a name must have`:                                             seasonOf("4th", from, from+hour),
		`period "a:b": a name must have`:                                             stretchesOf("a:b", time.Hour, from),
		`period "A": a name must have`:                                               calendarOf("A", periods.Weekly),
		`period "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": a name must have`:               calendarOf(periods.Period(strings.Repeat("a", 33)), periods.Weekly),
		"period \"mine\": unknown period \"fortnightly\"":                            calendarOf("mine", "fortnightly"),
		"start and end must be whole seconds":                                        seasonOf("a", from+1, from+hour),
		"period b: start and end must be whole seconds":                              seasonOf("b", from, from+hour+1),
		"end 2027-01-15T08:00:00Z must be after start 2027-01-15T08:00:00Z":          seasonOf("a", from, from),
		"start and end must be between 1970 and 2106-02-07T06:28:16Z":                seasonOf("a", -1000, from),
		"period b: start and end must be between 1970":                               seasonOf("b", from, periods.MaxTime+1000),
		"from and every must be whole seconds":                                       stretchesOf("a", time.Hour+time.Millisecond, from),
		"period b: from and every must be whole seconds":                             stretchesOf("b", time.Hour, from+1),
		"every 59s is out of range: 1m to 1193046h28m16s":                            stretchesOf("a", 59*time.Second, from),
		"every -1h0m0s is out of range":                                              stretchesOf("a", -time.Hour, from),
		"every 1193046h28m17s is out of range":                                       stretchesOf("a", (1<<32+1)*time.Second, from),
		"from must be between 1970":                                                  stretchesOf("a", time.Hour, -1000),
		"period b: from must be between 1970":                                        stretchesOf("b", time.Hour, periods.MaxTime),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v doesn't say %q", err, says)
		}
	}
	for _, err := range []error{
		calendarOf("weekly", periods.Weekly), calendarOf("w2-eu", periods.Weekly), seasonOf("a", 0, periods.MaxTime),
		stretchesOf("a", time.Minute, 0), stretchesOf("a", 1<<32*time.Second, periods.MaxTime-1000),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// drawnRule draws a period of any kind and an instant, often near a border.
func drawnRule(t *rapid.T) (r periods.Rule, ms int64) {
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		c, p, _ := drawn(t)
		r, err = periods.ByCalendar("mine", p, c)
	case 1:
		start := rapid.Int64Range(0, 1<<32-1).Draw(t, "start")
		r, err = periods.Season("mine", start*1000, 1000*rapid.Int64Range(start+1, 1<<32).Draw(t, "end"))
	case 2:
		unit := rapid.SampledFrom([]int64{1, 60, 86_400}).Draw(t, "unit")
		every := max(60, unit*rapid.Int64Range(1, 100).Draw(t, "every"))
		unit = rapid.SampledFrom([]int64{1, 60, 3600, unit}).Draw(t, "unit of from")
		from := rapid.Int64Range(0, (1<<32-1)/unit).Draw(t, "from") * unit
		r, err = periods.Stretches("mine", time.Duration(every)*time.Second, from*1000)
	}
	require.NoError(t, err)
	ms = rapid.Int64Range(0, periods.MaxTime-1).Draw(t, "ms")
	if span, err := periods.SpanOf([]periods.Rule{r}, ms); rapid.Bool().Draw(t, "near a border") && err == nil {
		near := rapid.SampledFrom([]int64{span.Start, span.End}).Draw(t, "border") + rapid.Int64Range(-2, 2).Draw(t, "off")
		ms = max(0, min(near, periods.MaxTime-1))
	}
	return r, ms
}

func TestAnInstantLiesInTheWindowOfItsPeriodOrBesideAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, ms := drawnRule(t)
		w, place, err := r.At(ms)
		require.NoError(t, err)
		if place != periods.Inside {
			// All instants further out are outside the windows too.
			further := rapid.Int64Range(0, ms).Draw(t, "before")
			if place == periods.After {
				further = rapid.Int64Range(ms, periods.MaxTime-1).Draw(t, "after")
			}
			if v, p, err := r.At(further); err != nil || p != place || w != v || w != (periods.Window{}) {
				t.Fatalf("%v: %d is in %+v (%d), %d in %+v (%d), %v", &r, ms, w, place, further, v, p, err)
			}
			return
		}
		if w.Period != "mine" || ms < w.Start || ms >= w.End || w.Start%1000 != 0 || w.End%1000 != 0 || strings.Contains(w.Name, ":") {
			t.Fatalf("%v: %d is in %+v", &r, ms, w)
		}
		if length := time.Duration(w.End-w.Start) * time.Millisecond; length > r.Length() {
			t.Fatalf("%v: %+v is %v long, more than %v", &r, w, length, r.Length())
		}
		other := rapid.Int64Range(max(0, w.Start-1e9), min(w.End+1e9, periods.MaxTime)-1).Draw(t, "other")
		if v, _, err := r.At(other); err != nil || (v == w) != (w.Start <= other && other < w.End) {
			t.Fatalf("%v: %d lies in %+v, %d in %+v, %v", &r, ms, w, other, v, err)
		}
		if named, err := r.Named(w.Name); err != nil || named != w {
			t.Fatalf("%v: %+v is named as %+v, %v", &r, w, named, err)
		}
	})
}

func TestTheWindowsOfAPeriodMeetAndSortByName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, ms := drawnRule(t)
		w, place, err := r.At(ms)
		if err != nil || place != periods.Inside {
			return
		}
		if next, ok := r.Next(w); ok {
			if back, ok := r.Previous(next); next.Start != w.End || !ok || back != w || next.Name <= w.Name || next.Period != "mine" {
				t.Fatalf("%v: after %+v comes %+v, before that %+v", &r, w, next, back)
			}
		} else if _, place, _ := r.At(min(w.End, periods.MaxTime-1)); w.End < periods.MaxTime && place != periods.After {
			t.Fatalf("%v: nothing comes after %+v", &r, w)
		}
		if before, ok := r.Previous(w); ok {
			if next, ok := r.Next(before); before.End != w.Start || !ok || next != w || before.Name >= w.Name {
				t.Fatalf("%v: before %+v comes %+v, after that %+v", &r, w, before, next)
			}
		} else if _, place, _ := r.At(max(0, w.Start-1)); w.Start > 0 && place != periods.Before {
			t.Fatalf("%v: nothing comes before %+v", &r, w)
		}
	})
}

func TestASpanOfPeriodsIsTheLongestWithTheSameWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var of []periods.Rule
		ms := int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "periods") {
			r, at := drawnRule(t)
			of, ms = append(of, r), at
		}
		span, err := periods.SpanOf(of, ms)
		if err != nil || !span.Holds(ms) || len(span.Windows) != len(of) || span.Start < 0 || span.End > periods.MaxTime {
			t.Fatalf("%v at %d: %+v, %v", of, ms, span, err)
		}
		same := func(ms int64) bool {
			for i := range of {
				_, place, err := of[i].At(ms)
				_, want, _ := of[i].At(span.Start)
				if w, _, _ := of[i].At(ms); err != nil || w != span.Windows[i] || place != want {
					return false
				}
			}
			return true
		}
		inside := rapid.Int64Range(span.Start, span.End-1).Draw(t, "inside")
		if !same(ms) || !same(inside) || !same(span.Start) || !same(span.End-1) {
			t.Fatalf("%v: other windows inside %+v", of, span)
		}
		if span.Start > 0 && same(span.Start-1) || span.End < periods.MaxTime && same(span.End) {
			t.Fatalf("%v: the same windows outside %+v", of, span)
		}
	})
}

func TestABuiltInPeriodHasTheWindowsOfItsCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p, ms := drawn(t)
		r, err := periods.ByCalendar(p, p, c)
		require.NoError(t, err)
		want := at(t, c, p, ms)
		got, place, err := r.At(ms)
		if err != nil || place != periods.Inside || got != want || r.Length() != p.Length() || r.Retention() != p.Retention() {
			t.Fatalf("%+v, %d, %v; want %+v", got, place, err, want)
		}
	})
}

func TestAnInstantOutsideOfTimeHasNoWindowInAnyKind(t *testing.T) {
	for _, r := range someRules(t) {
		for _, ms := range []int64{-1, periods.MaxTime, math.MinInt64, math.MaxInt64} {
			if w, _, err := r.At(ms); err == nil || w != (periods.Window{}) {
				t.Errorf("%s at %d: %+v, %v", r.Name(), ms, w, err)
			}
			if span, err := periods.SpanOf([]periods.Rule{r}, ms); err == nil {
				t.Errorf("%s at %d: %+v", r.Name(), ms, span)
			}
		}
	}
}

func someRules(t testing.TB) []periods.Rule {
	t.Helper()
	return []periods.Rule{
		byCalendar(t, "weekly-us", periods.Weekly, "America/New_York", "sunday"),
		season(t, "season-4", "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"),
		stretches(t, "sprint", 72*time.Hour, "2026-01-01T00:00:00Z"),
		stretches(t, "shift", 8*time.Hour, "2026-01-01T06:00:00Z"),
		stretches(t, "odd", 61*time.Second, "2026-01-01T00:00:07Z"),
	}
}

func TestANameThatNoWindowOfAPeriodHasIsRefusedWithWhatWouldBeRight(t *testing.T) {
	all := someRules(t)
	for _, bad := range []struct {
		rule int
		name string
		says string
	}{
		{0, "2026-11-16", `weekly-us window "2026-11-16": weeks start on sunday: use 2026-11-15`},
		{1, "2026", `season-4 window "2026": use all`},
		{2, "all", `use the form 2026-01-01, the start`},
		{2, "2026-01-02", "no window starts then: use 2026-01-01"},
		{2, "2025-12-29", "windows start between 2026-01-01 and February 2106"},
		{2, "2106-02-08", "windows start between 2026-01-01 and February 2106"},
		{2, "2026-02-30", "no such date"},
		{2, "2026-01-01T0000Z", "use the form 2026-01-01"},
		{3, "2026-01-01", "use the form 2026-01-01T0600Z"},
		{3, "2026-01-01T2500Z", "no such date"},
		{3, "2026-01-01T06:00Z", "use the form 2026-01-01T0600Z"},
		{3, "2026-01-01T0700Z", "no window starts then: use 2026-01-01T0600Z"},
		{4, "2026-01-01T000060Z", "no such date"},
		{4, strings.Repeat("2026", 10_000), "use the form 2026-01-01T000007Z"},
	} {
		w, err := all[bad.rule].Named(bad.name)
		if err == nil || !strings.Contains(err.Error(), bad.says) || len(err.Error()) > 250 || w != (periods.Window{}) {
			t.Errorf("%.30q: %+v, %v; want it to say %q", bad.name, w, err, bad.says)
		}
	}
}

// FuzzRuleNamed checks names: an accepted name is the name of the window found, and of the instants in it.
func FuzzRuleNamed(f *testing.F) {
	all := someRules(f)
	for i, name := range []string{"2026-11-15", "all", "2026-01-04", "2026-11-21T0600Z", "2026-01-01T000108Z"} {
		f.Add(uint8(i), name)
	}
	f.Fuzz(func(t *testing.T, which uint8, name string) {
		r := all[int(which)%len(all)]
		w, err := r.Named(name)
		if err != nil {
			if w != (periods.Window{}) || len(err.Error()) > 400 {
				t.Errorf("%+v with an error of %d bytes", w, len(err.Error()))
			}
			return
		}
		if w.Name != name || w.Period != r.Name() || w.Start >= w.End {
			t.Errorf("%s %q is %+v", r.Name(), name, w)
		}
		for _, ms := range []int64{max(w.Start, 0), min(w.End, periods.MaxTime) - 1} {
			if at, place, err := r.At(ms); err != nil || place != periods.Inside || at != w {
				t.Errorf("%s %q is %+v, but at %d it is %+v, %v", r.Name(), name, w, ms, at, err)
			}
		}
	})
}

// BenchmarkRule measures the cost of finding a board's windows outside the last span.
func BenchmarkRule(b *testing.B) {
	of := []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}
	rules := make([]periods.Rule, len(of))
	for i, p := range of {
		rules[i] = byCalendar(b, p, p, "Europe/Berlin", "monday")
	}
	for name, rules := range map[string][]periods.Rule{"rules": rules, "season and stretches": someRules(b)[1:4]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range int64(b.N) {
				if _, err := periods.SpanOf(rules, 1795248930123+i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
