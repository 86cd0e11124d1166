package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const ownFile = `
periods:
  weekly-us: {calendar: weekly, time_zone: America/New_York, week_start: sunday}
  season-4:  {start: 2026-12-01T00:00:00Z, end: 2027-03-01T00:00:00+01:00, layout: wide, retention: 5d, lateness: 2d}
  sprint:    {every: 72h, from: 2026-01-01T00:00:00Z}
  off:       {calendar: daily, enabled: false}
  weekly:    {lateness: 0s}
lateness: 3h
`

func TestPeriodsOfOnesOwnStandBesideTheBuiltInOnes(t *testing.T) {
	l, err := Load(writeFile(t, ownFile), []string{
		"STANDINGS_PERIODS_SPRINT_EVERY=48h",                                                                 // overrides the file
		"STANDINGS_PERIODS_CUP_START=2026-01-01T00:00:00Z", "STANDINGS_PERIODS_CUP_END=2026-02-01T00:00:00Z", // only in the environment
		"STANDINGS_PERIODS_GAME_WEEK_START=2026-11-01T00:00:00Z", "STANDINGS_PERIODS_GAME_WEEK_END=2026-11-02T00:00:00Z",
		"STANDINGS_PERIODS_WEEKLY_US_WEEK_START=friday",
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range l.Config.Kept() {
		rule, err := l.Config.Rule(p)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, strings.Join([]string{string(p.Name), rule.String(), p.Layout, p.Retention.String(), l.Config.LatenessOf(p).String()}, "; "))
	}
	want := []string{
		"weekly; weekly in UTC, from monday; readable; 1440h0m0s; 0s",
		"monthly; monthly in UTC; readable; 9600h0m0s; 3h0m0s",
		"yearly; yearly in UTC; readable; 19200h0m0s; 3h0m0s",
		"cup; from 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z; readable; 9600h0m0s; 3h0m0s",
		"game-week; from 2026-11-01T00:00:00Z to 2026-11-02T00:00:00Z; readable; 336h0m0s; 3h0m0s",
		"season-4; from 2026-12-01T00:00:00Z to 2027-02-28T23:00:00Z; wide; 120h0m0s; 48h0m0s",
		"sprint; every 48h0m0s from 2026-01-01T00:00:00Z; readable; 1440h0m0s; 3h0m0s",
		"weekly-us; weekly in America/New_York, from friday; readable; 1440h0m0s; 3h0m0s",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	if s := l.setting("periods.sprint.every"); s.Shown() != "2d" || s.From.String() != "environment STANDINGS_PERIODS_SPRINT_EVERY" || !s.Fixed {
		t.Errorf("periods.sprint.every is %q from %s", s.Shown(), s.From)
	}
}

func TestWhatIsWrongWithAPeriodOfOnesOwnIsNamed(t *testing.T) {
	const start, end = "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"
	for _, c := range []struct{ period, key, says string }{
		{"x: {calendar: fortnightly}", "periods.x.calendar", "must be one of daily, weekly"},
		{"x: {calendar: weekly, start: " + start + "}", "periods.x.calendar", "conflicts with settings of another kind"},
		{"x: {start: " + start + ", end: " + end + ", every: 1h}", "periods.x.every", "conflicts with start and end"},
		{"x: {calendar: ''}", "periods.x.enabled", "has no windows"},
		{"x: {start: " + start + "}", "periods.x.end", "is missing"},
		{"x: {end: " + end + "}", "periods.x.start", "is missing"},
		{"x: {every: 1h}", "periods.x.from", "is missing"},
		{"x: {from: " + start + "}", "periods.x.every", "is missing"},
		{"x: {start: " + end + ", end: " + start + "}", "periods.x.end", "must be after start"},
		{"x: {start: " + start + ", end: " + start + "}", "periods.x.end", "must be after start"},
		{"x: {start: yesterday, end: " + end + "}", "periods.x.start", "must be a time such as"},
		{"x: {start: 2026-12-01T00:00:00.5Z, end: " + end + "}", "periods.x.end", "whole second"},
		{"x: {every: 1s, from: " + start + "}", "periods.x.every", "out of range: 1m to"},
		{"x: {every: 90500ms, from: " + start + "}", "periods.x.every", "whole seconds"},
		{"x: {every: 1m, from: " + start + ", retention: 800d}", "periods.x.every", "at most 100000"},
		{"x: {calendar: weekly, time_zone: Mars/Olympus}", "periods.x.time_zone", "IANA"},
		{"x: {calendar: weekly, week_start: someday}", "periods.x.week_start", "must be one of"},
		{"x: {every: 1h, from: " + start + ", time_zone: UTC}", "periods.x.time_zone", "requires calendar"},
		{"x: {every: 1h, from: " + start + ", week_start: friday}", "periods.x.week_start", "requires calendar"},
		{"x: {calendar: weekly, retention: 1s}", "periods.x.retention", "out of range: 1h to"},
		{"x: {calendar: weekly, layout: tall}", "periods.x.layout", "must be one of"},
		{"x: {calendar: weekly, tend: 1}", "periods.x.tend", "did you mean periods.x.end?"},
		{"Season 4: {calendar: weekly}", "periods.Season 4.enabled", "1 to 32 lower-case letters"},
		{"a:b: {calendar: weekly}", "periods.a:b.enabled", "1 to 32 lower-case letters"},
		{"a.b: {calendar: weekly}", "periods.a.b.enabled", "1 to 32 lower-case letters"},
		{"weekly: {calendar: weekly}", "periods.weekly.calendar", "a built-in period"},
		{"weekly: {time_zone: UTC}", "periods.weekly.time_zone", "a built-in period"},
		{"x: 5", "periods.x", "unknown period; to define one, give either calendar, or start and end, or every and from"},
		{"x: {}", "periods.x", "unknown period"},
		{"x: ", "periods.x", "unknown period"},
		{"x: {time_zone: UTC}", "periods.x.time_zone", "unknown period"},
		{"x: {start: 1969-01-01T00:00:00Z, end: " + end + "}", "periods.x.end", "start and end must be between 1970 and 2106"},
		{"x: {start: " + start + ", end: 2200-01-01T00:00:00Z}", "periods.x.end", "start and end must be between 1970 and 2106"},
		{"x: {every: 1h, from: 2200-01-01T00:00:00Z}", "periods.x.every", "from must be between 1970 and 2106"},
		{"x: {every: soon, from: " + start + "}", "periods.x.every", "must be a duration such as"},
		{"x: {calendar: weekly, retention: soon}", "periods.x.retention", "must be a duration such as"},
		{"x: {calendar: weekly, lateness: -1s}", "periods.x.lateness", "must be a duration such as"},
		{"x: {calendar: [weekly]}", "periods.x.calendar", "is a list, but must be a word"},
		{"x: {calendar: weekly, enabled: maybe}", "periods.x.enabled", "must be true or false"},
		{"weekley: {enabled: true}", "periods.weekley.enabled", "did you mean periods.weekly.enabled?"},
	} {
		refuses(t, "periods:\n  "+c.period+"\n", c.key, c.says)
	}
	if found := problems(t, "", "STANDINGS_PERIODS_WEEKLY_START=2026-12-01T00:00:00Z"); found["STANDINGS_PERIODS_WEEKLY_START"] == nil {
		t.Errorf("a built-in period has a start: %v", found)
	}
}

func TestThereAreNoMorePeriodsThanAnEventCanBeIn(t *testing.T) {
	var file strings.Builder
	file.WriteString("periods:\n")
	for i := range 30 {
		file.WriteString("  p" + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ": {calendar: daily}\n")
	}
	if found := problems(t, file.String()); len(found) != 1 {
		t.Errorf("33 periods: %v", found)
	}
	if found := problems(t, file.String()+"  yearly: {enabled: false}\n"); len(found) != 0 {
		t.Errorf("32 periods are refused: %v", found)
	}
}

func TestManyWindowsAreWarnedOf(t *testing.T) {
	for file, want := range map[string]bool{
		"{periods: {x: {every: 1m, from: 2026-12-01T00:00:00Z}}}":                true,
		"{periods: {x: {every: 1m, from: 2026-12-01T00:00:00Z, retention: 2d}}}": false,
	} {
		l, err := Load(writeFile(t, file), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, warnings, err := l.Config.Layouts(time.Unix(1_793_577_600, 0))
		if found := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "periods.x.retention") }); err != nil || found != want {
			t.Errorf("%s: %v, %v", file, warnings, err)
		}
	}
}
