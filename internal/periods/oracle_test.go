package periods_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/zoneinfo"
)

// The oracle derives windows from clocks. It steps through time, records the first instant of every date,
// and counts the weeks itself. It uses neither the package under test nor the calendar of package time.

// almanac has every date from 1969 to 2108, in order, and the names of the date's windows, with weeks that
// start on Monday and are named by ISO 8601.
var almanac = makeAlmanac()

type dates struct {
	text    []string // 2026-11-21
	weekday []int    // days after Monday
	names   map[periods.Period][]string
}

const epoch = 365 // index of 1970-01-01

func makeAlmanac() dates {
	a := dates{names: map[periods.Period][]string{}}
	add := func(p periods.Period, form string, of ...any) {
		a.names[p] = append(a.names[p], fmt.Sprintf(form, of...))
	}
	weekday := 2 // 1969-01-01 was a Wednesday
	for year := 1969; year <= 2108; year++ {
		lengths := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
		if year%4 == 0 && year%100 != 0 || year%400 == 0 {
			lengths[1] = 29
		}
		for m, length := range lengths {
			for d := 1; d <= length; d++ {
				add(periods.Daily, "%04d-%02d-%02d", year, m+1, d)
				add(periods.Monthly, "%04d-%02d", year, m+1)
				add(periods.Quarterly, "%04d-Q%d", year, m/3+1)
				add(periods.Yearly, "%04d", year)
				a.weekday = append(a.weekday, weekday)
				weekday = (weekday + 1) % 7
			}
		}
	}
	a.text = a.names[periods.Daily]
	// A week that contains January 4 is week 1 of its year; otherwise it is the next week.
	week, year := 1, 1969
	for i, text := range a.text {
		if a.weekday[i] == 0 {
			week++
			for _, in := range a.text[i:min(i+7, len(a.text))] {
				if strings.HasSuffix(in, "-01-04") {
					week = 1
					if _, err := fmt.Sscanf(text, "%d", &year); err != nil {
						panic(err) // it was written with %04d above
					}
					if strings.Contains(text, "-12-") {
						year++
					}
				}
			}
		}
		add(periods.Weekly, "%04d-W%02d", year, week)
	}
	return a
}

// begun is a date and the first instant, in Unix seconds, at which a clock shows it without having shown a
// later one.
type begun struct {
	date int // index in the almanac
	at   int64
}

// clock steps through a zone's dates.
type clock struct {
	loc     *time.Location
	latest  int // index of the latest date shown so far
	dates   []begun
	changes []int64 // approximately when the offset changed
}

func (c *clock) offset(at int64) int64 {
	_, offset := time.Unix(at, 0).In(c.loc).Zone()
	return int64(offset)
}

func (c *clock) see(at, offset int64) {
	local := at + offset + epoch*86_400
	if shown := int(local / 86_400); shown > c.latest {
		c.latest = shown
		c.dates = append(c.dates, begun{shown, at})
	}
}

// step processes (from, to], with the offsets was and is at the two ends. If they are equal, a date can
// only begin at the one midnight in the interval. Otherwise it takes smaller steps.
func (c *clock) step(from, to, was, is int64) {
	if was == is {
		local := to + is + epoch*86_400
		if midnight := to - local%86_400; midnight > from {
			c.see(midnight, is)
		}
		return
	}
	smaller := int64(0)
	switch to - from {
	case 24 * 3600:
		smaller = 3600
	case 3600:
		smaller = 60
	case 60:
		smaller = 1
		c.changes = append(c.changes, to)
	case 1:
		c.see(to, is)
		return
	}
	for at := from; at < to; at += smaller {
		now := c.offset(at + smaller)
		c.step(at, at+smaller, was, now)
		was = now
	}
}

// watch reads a zone's clock between two instants, in Unix seconds.
func watch(loc *time.Location, from, to int64) *clock {
	c := &clock{loc: loc, latest: -1, dates: make([]begun, 0, (to-from)/86_400+3)}
	was := c.offset(from)
	c.see(from, was)
	for at := from; at < to; at += 24 * 3600 {
		is := c.offset(at + 24*3600)
		c.step(at, at+24*3600, was, is)
		was = is
	}
	return c
}

// sum is a hash (FNV-1a over the dates) of when a zone's dates begin.
func (c *clock) sum() uint64 {
	sum := uint64(14695981039346656037)
	for _, d := range c.dates {
		sum = (sum ^ uint64(d.at)) * 1099511628211
	}
	return sum
}

// windows groups the dates by a period's windows. It leaves out the first and the last window, which may be
// partial. They have no gaps by construction.
func (c *clock) windows(p periods.Period, weekStart int) []periods.Window {
	names := almanac.names[p]
	all := make([]periods.Window, 0, len(c.dates))
	for _, d := range c.dates {
		name := names[d.date]
		if p == periods.Weekly && weekStart != 0 {
			name = almanac.text[d.date-(almanac.weekday[d.date]-weekStart+7)%7]
		}
		if n := len(all); n > 0 {
			if all[n-1].Name == name {
				continue
			}
			all[n-1].End = d.at * 1000
		}
		all = append(all, periods.Window{Period: p, Name: name, Start: d.at * 1000})
	}
	return all[1 : len(all)-1]
}

// byDates returns the periods that depend on dates: all but all-time.
func byDates() []periods.Period {
	return slices.DeleteFunc(periods.All(), func(p periods.Period) bool { return p == periods.AllTime })
}

func calendar(t testing.TB, zone, weekStart string) periods.Calendar {
	t.Helper()
	c, err := periods.NewCalendar(zone, weekStart)
	require.NoError(t, err)
	return c
}

func location(t testing.TB, zone string) *time.Location {
	t.Helper()
	loc, err := zoneinfo.Load(zone)
	require.NoError(t, err)
	return loc
}

func instant(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at.UnixMilli()
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
