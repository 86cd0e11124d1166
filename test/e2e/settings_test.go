package e2e

// The settings that change which windows exist, or the layout of scores.

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestStandingsMatchTheOracleUnderEverySettingOfTime(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	everyPeriod := map[string]string{}
	for _, p := range []string{"daily", "weekly", "monthly", "quarterly", "yearly", "all-time"} {
		everyPeriod["periods."+p+".enabled"] = "true"
		everyPeriod["periods."+p+".retention"] = "36500d" // so that past windows are kept
	}
	with := func(settings ...string) map[string]string {
		all := map[string]string{"lateness": "36500d"}
		for k, v := range everyPeriod {
			all[k] = v
		}
		for i := 0; i < len(settings); i += 2 {
			all[settings[i]] = settings[i+1]
		}
		return all
	}
	wide := with("max_points", "10000000000")
	for _, p := range []string{"daily", "weekly", "monthly", "quarterly", "yearly", "all-time"} {
		wide["periods."+p+".layout"] = "wide"
	}
	// One period of each kind in addition to the built-in ones, in time zones of both hemispheres.
	own := func(more ...string) map[string]string {
		all := with(more...)
		for _, s := range [][2]string{
			{"north.calendar", "weekly"}, {"north.time_zone", "America/New_York"}, {"north.week_start", "sunday"},
			{"south.calendar", "daily"}, {"south.time_zone", "America/Sao_Paulo"}, {"south.layout", "wide"},
			{"season.start", "2018-11-03T12:00:00Z"}, {"season.end", "2018-11-04T12:00:00Z"},
			{"to-come.start", "2100-01-01T00:00:00Z"}, {"to-come.end", "2101-01-01T00:00:00Z"},
			{"sprint.every", "36h"}, {"sprint.from", "2018-11-03T00:00:00Z"},
			{"dash.every", "45s"}, {"dash.from", "2018-11-04T02:00:00Z"}, {"dash.layout", "wide"},
		} {
			all["periods."+s[0]] = s[1]
			all["periods."+strings.Split(s[0], ".")[0]+".retention"] = "36500d"
		}
		all["periods.dash.every"], all["periods.dash.retention"] = "1h30m", "5000d"
		return all
	}
	ownAlone := own("periods.season.lateness", "12h")
	for _, p := range []string{"daily", "weekly", "monthly", "quarterly", "yearly", "all-time"} {
		ownAlone["periods."+p+".enabled"] = "false"
	}
	for _, name := range []string{"north", "south"} {
		ownAlone["periods."+name+".enabled"] = "false"
		delete(ownAlone, "periods."+name+".calendar")
		for _, setting := range []string{"enabled", "time_zone", "week_start", "retention", "layout"} {
			delete(ownAlone, "periods."+name+"."+setting)
		}
	}
	settings := map[string]struct {
		settings map[string]string
		now      string
		spread   time.Duration
		most     int64
	}{
		"every period, readable":   {with(), "", 500 * 24 * time.Hour, 100},
		"every period, wide":       {wide, "", 500 * 24 * time.Hour, 400_000_000},
		"weeks start on Sunday":    {with("week_start", "sunday"), "", 30 * 24 * time.Hour, 100},
		"a clock goes back":        {with("time_zone", "Europe/Berlin"), "2025-10-28T00:00:00Z", 5 * 24 * time.Hour, 100},
		"a clock goes forward":     {with("time_zone", "America/New_York"), "2025-03-11T00:00:00Z", 5 * 24 * time.Hour, 100},
		"midnight is left out":     {with("time_zone", "America/Sao_Paulo"), "2018-11-05T00:00:00Z", 3 * 24 * time.Hour, 100},
		"midnight comes twice":     {with("time_zone", "America/Sao_Paulo"), "2018-02-19T00:00:00Z", 3 * 24 * time.Hour, 100},
		"a quarter of an hour off": {with("time_zone", "Asia/Kathmandu", "week_start", "saturday"), "2026-01-02T00:00:00Z", 4 * 24 * time.Hour, 100},
		"periods of one's own":     {own(), "2018-11-05T00:00:00Z", 3 * 24 * time.Hour, 100},
		"no other periods":         {ownAlone, "2018-11-05T00:00:00Z", 3 * 24 * time.Hour, 100}, // the first hours are early
	}
	for i, name := range slices.Sorted(maps.Keys(settings)) {
		t.Run(name, func(t *testing.T) {
			c, now := settings[name], time.Now()
			c.settings["redis.shards"] = []string{"1", "5"}[i%2] // alternately: windows do not depend on shards
			if c.now != "" {
				var err error
				if now, err = time.Parse(time.RFC3339, c.now); err != nil {
					t.Fatal(err)
				}
			}
			place := harness.New(t, harness.Options{Partitions: 2, Settings: c.settings})
			g := generator(t, sample.Options{
				Seed: 5, Members: 200, Boards: []string{"global", "eu"}, BoardsPerEvent: 2,
				Spread: c.spread, Corrections: 0.2, PointsMin: 0, PointsMax: c.most,
			})
			g.SetNow(now)
			place.Publish(t, records(g, 3000, 2)...)
			consumer := place.Start(t)
			place.AwaitCaughtUp(t, within)
			consumer.Terminate(t)
			place.Check(t)
			place.CheckCounts(t)
		})
	}
}
