package harness

// This file converts the settings for the oracle. It parses them independently, with the defaults that the
// README promises, so that an unnoticed change of a default fails a test.

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/zoneinfo"
	"github.com/standings/standings/test/oracle"
)

var weekdays = map[string]time.Weekday{
	"": time.Monday, "monday": time.Monday, "tuesday": time.Tuesday, "wednesday": time.Wednesday,
	"thursday": time.Thursday, "friday": time.Friday, "saturday": time.Saturday, "sunday": time.Sunday,
}

// periods holds the default retentions in days, and the periods that are enabled by default.
var periods = []struct {
	name      string
	retention int
	enabled   bool
}{
	{"daily", 14, false}, {"weekly", 60, true}, {"monthly", 400, true},
	{"quarterly", 400, false}, {"yearly", 800, true}, {"all-time", 800, false},
}

const day = 24 * time.Hour

// oracleConfig returns the oracle's configuration for these settings.
func oracleConfig(t testing.TB, settings map[string]string) oracle.Config {
	t.Helper()
	get := func(key, otherwise string) string {
		if v, ok := settings[key]; ok {
			return v
		}
		return otherwise
	}
	integer := func(key, otherwise string) int64 {
		n, err := strconv.ParseInt(get(key, otherwise), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return n
	}
	duration := func(key, otherwise string) time.Duration {
		text := get(key, otherwise)
		if n, err := strconv.Atoi(strings.TrimSuffix(text, "d")); err == nil {
			return time.Duration(n) * day
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return d
	}
	zone, err := zoneinfo.Load(get("time_zone", "UTC"))
	if err != nil {
		t.Fatal(err)
	}
	c := oracle.Config{
		Zone: zone, WeekStart: weekdays[get("week_start", "")],
		MaxPoints: integer("max_points", "99999999"), MaxEventBytes: int(integer("max_event_bytes", "1048576")),
		MaxFuture: duration("max_future", "5m"), Lateness: duration("lateness", "24h"),
		Duplicates: integer("event.duplicates", "0"), Names: get("event.fields.name", "") != "",
	}
	switch boards := get("boards", ""); {
	case strings.HasPrefix(boards, "{"):
		c.Boards, c.Rules = rules(t, boards)
	case boards != "":
		c.Boards = strings.Split(boards, ",")
	}
	for key, path := range settings {
		if field, ok := strings.CutPrefix(key, "event.fields."); ok {
			if c.Fields == nil {
				c.Fields = map[string][]string{}
			}
			// \x00 stands for an escaped dot in a name.
			for _, name := range strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".") {
				c.Fields[field] = append(c.Fields[field], strings.ReplaceAll(name, "\x00", "."))
			}
		}
	}
	for _, p := range periods {
		key := "periods." + p.name
		if get(key+".enabled", strconv.FormatBool(p.enabled)) == "true" {
			c.Periods = append(c.Periods, oracle.Period{
				Name: p.name, Layout: get(key+".layout", "readable"),
				Retention: duration(key+".retention", strconv.Itoa(p.retention)+"d"),
			})
		}
	}
	for name := range ownPeriods(settings) {
		c.Periods = append(c.Periods, ownPeriod(t, "periods."+name+".", get, duration))
	}
	return c
}

// rules parses the section boards, written as JSON. It returns the permitted names, or nil if any board is
// permitted, and the boards' rules.
func rules(t testing.TB, section string) (names []string, boards map[string]oracle.Board) {
	t.Helper()
	var all map[string]struct {
		Score  string
		Fields []struct {
			Name   string
			Max    int64
			Order  string
			Signed bool
		}
		Periods []string
	}
	d := json.NewDecoder(strings.NewReader(section))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("boards: %v", err)
	}
	boards = map[string]oracle.Board{}
	for name, b := range all {
		names = append(names, name)
		board := oracle.Board{Score: b.Score, Periods: b.Periods}
		for _, f := range b.Fields {
			board.Fields = append(board.Fields, oracle.Field{Name: f.Name, Max: f.Max, Signed: f.Signed, Fewest: f.Order == "fewest"})
		}
		boards[name] = board
	}
	if _, others := boards[oracle.AnyBoard]; others {
		names = nil
	}
	return names, boards
}

// ownPeriods returns the names of the periods that are not built in.
func ownPeriods(settings map[string]string) map[string]bool {
	own := map[string]bool{}
	for key := range settings {
		if parts := strings.Split(key, "."); parts[0] == "periods" && slices.Contains([]string{"calendar", "end", "every"}, parts[2]) {
			own[parts[1]] = true
		}
	}
	return own
}

func ownPeriod(t testing.TB, section string, get func(key, otherwise string) string, duration func(key, otherwise string) time.Duration) oracle.Period {
	t.Helper()
	instant := func(setting string) int64 {
		at, err := time.Parse(time.RFC3339, get(section+setting, "1970-01-01T00:00:00Z"))
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	p := oracle.Period{
		Name: strings.Split(section, ".")[1], Layout: get(section+"layout", "readable"),
		Retention: duration(section+"retention", "800d"), Calendar: get(section+"calendar", ""),
		Start: instant("start") + instant("from"), End: instant("end"), Every: duration(section+"every", "0s").Milliseconds(),
	}
	if zone := get(section+"time_zone", ""); zone != "" {
		var err error
		if p.Zone, err = zoneinfo.Load(zone); err != nil {
			t.Fatal(err)
		}
	}
	if day := get(section+"week_start", ""); day != "" {
		p.WeekStart = new(weekdays[day])
	}
	if get(section+"lateness", "") != "" {
		p.Lateness = new(duration(section+"lateness", ""))
	}
	return p
}
