package simulate

// This file adds periods that are not built in: calendars of other zones, seasons (past, current and
// future), and intervals of equal length. The definitions for the product and for the oracle are written
// separately, because the two share nothing.

import (
	"math/rand/v2"
	"time"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/zoneinfo"
	"github.com/standings/standings/test/oracle"
)

// ownEvery selects the seeds of worlds with such periods: its multiples.
const ownEvery = 7

// dashLateness is the lateness of the period dash. It differs from the others' lateness, for which events
// of weeks ago are late.
const dashLateness = 40 * day

var ownNames = []string{"us-week", "south", "season", "to-come", "over", "sprint", "dash"}

// own adds such periods to a plan, from a generator of its own, so that worlds without them do not change.
func (d *drawer) own(p *plan) {
	if p.seed%ownEvery != 0 {
		return
	}
	r := rand.New(rand.NewPCG(uint64(p.seed), 0x0e11))
	names := append([]string{}, ownNames...)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if r.IntN(5) == 0 { // without a built-in period, some events are before the start of every period
		p.setup.Periods = nil
	}
	p.setup.Periods = append(p.setup.Periods, names[:1+r.IntN(3)]...)
}

// rule returns the product's rule of a period.
func (w *world) rule(name string) periods.Rule { return w.ruleIn(name, periods.NewCalendar) }

// ruleIn returns the rule of a period under one version of the time zone rules.
func (w *world) ruleIn(name string, in func(zone, week string) (periods.Calendar, error)) periods.Rule {
	var r periods.Rule
	var err error
	hours := func(n int) int64 { return beginning.Add(time.Duration(n) * time.Hour).UnixMilli() }
	calendar := func(zone, week string) periods.Calendar {
		c, err := in(zone, week)
		if err != nil {
			panic(err)
		}
		return c
	}
	switch p := periods.Period(name); name {
	case "us-week":
		r, err = periods.ByCalendar(p, periods.Weekly, calendar("America/New_York", "sunday"))
	case "south":
		r, err = periods.ByCalendar(p, periods.Daily, calendar("Australia/Lord_Howe", "monday"))
	case "season":
		r, err = periods.Season(p, hours(-26), hours(3))
	case "to-come":
		r, err = periods.Season(p, hours(-1), hours(500))
	case "over":
		r, err = periods.Season(p, hours(-400), hours(-30))
	case "sprint":
		r, err = periods.Stretches(p, 7*time.Hour, hours(-50))
	case "dash":
		r, err = periods.Stretches(p, 90*time.Minute+5*time.Second, hours(-1000))
	default:
		return periods.BuiltIn(p, calendar(w.setup.Zone, w.setup.WeekStart))
	}
	if err != nil {
		panic(err)
	}
	return r
}

// latenessOf returns a period's lateness.
func latenessOf(name string) time.Duration {
	if name == "dash" {
		return dashLateness
	}
	return lateness
}

// oraclePeriod returns the oracle's definition of a period.
func oraclePeriod(name, layout string) oracle.Period {
	const hour = 3_600_000
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	p := oracle.Period{Name: name, Layout: layout, Retention: retention[name]}
	zone := func(of string) {
		var err error
		if p.Zone, err = zoneinfo.Load(of); err != nil {
			panic(err)
		}
	}
	switch name {
	case "us-week":
		p.Calendar, p.WeekStart = "weekly", new(time.Sunday)
		zone("America/New_York")
	case "south":
		p.Calendar, p.WeekStart = "daily", new(time.Monday)
		zone("Australia/Lord_Howe")
	case "season":
		p.Start, p.End = begin-26*hour, begin+3*hour
	case "to-come":
		p.Start, p.End = begin-hour, begin+500*hour
	case "over":
		p.Start, p.End = begin-400*hour, begin-30*hour
	case "sprint":
		p.Start, p.Every = begin-50*hour, 7*hour
	case "dash":
		p.Start, p.Every, p.Lateness = begin-1000*hour, 5_405_000, new(40*24*time.Hour)
	}
	return p
}
