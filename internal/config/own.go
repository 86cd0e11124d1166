package config

// The operator's own periods: their names in the file and the environment, their settings, and the checks
// across settings.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/units"
)

// OwnPeriod has the settings that decide the windows of a period that is not built in, as text: a calendar, a
// season, or stretches of equal length. Settings that are not given are empty.
type OwnPeriod struct {
	Calendar  string
	TimeZone  string
	WeekStart string

	Start string // RFC 3339
	End   string

	Every time.Duration
	From  string
}

// kindSettings are the settings that define an own period: any of them creates it.
var kindSettings = []string{"calendar", "start", "end", "every", "from"}

// windowSettings are all settings that decide windows. A built-in period has none of them.
var windowSettings = append([]string{"time_zone", "week_start"}, kindSettings...)

const (
	kindsText = "either calendar, or start and end, or every and from"
	// mostWindows is the maximum number of windows of a board that a period may keep: some operations read all
	// of them.
	mostWindows = 100_000
	manyWindows = 10_000
)

// ownOptions returns the settings of an own period.
func ownOptions(p *Period) []option {
	o := &OwnPeriod{}
	p.Own = o
	section := "periods." + string(p.Name)
	var calendars []string
	for _, name := range periods.All() {
		calendars = append(calendars, string(name))
	}
	return []option{
		{Key: section + ".enabled", Fixed: true, def: "true", value: boolValue(&p.Enabled),
			doc: enabledDoc},
		{Key: section + ".calendar", Fixed: true, value: choiceOrNone(&o.Calendar, calendars),
			doc: "Built-in period whose windows it has."},
		{Key: section + ".time_zone", Fixed: true, value: textValue(&o.TimeZone, "an IANA name; empty for `time_zone`", orNone(zoneName)),
			doc: "With `calendar`: time zone of the windows."},
		{Key: section + ".week_start", Fixed: true, value: choiceOrNone(&o.WeekStart, weekdays),
			doc: "With `calendar`: first day of a week. Empty: `week_start`."},
		{Key: section + ".start", Fixed: true, value: textValue(&o.Start, instantRule, orNone(instantText)),
			doc: "Start of a season. Its one window is named `all`."},
		{Key: section + ".end", Fixed: true, value: textValue(&o.End, instantRule, orNone(instantText)),
			doc: "End of a season, exclusive."},
		{Key: section + ".every", Fixed: true, value: durationOrNone(&o.Every, time.Minute, 36500*units.Day),
			doc: "Length of consecutive windows."},
		{Key: section + ".from", Fixed: true, value: textValue(&o.From, instantRule, orNone(instantText)),
			doc: "With `every`: start of the first window."},
		{Key: section + ".layout", Fixed: true, def: string(codec.Readable), value: choiceValue(&p.Layout, layouts),
			doc: layoutDoc},
		{Key: section + ".retention", value: durationOrNone(&p.Retention, time.Hour, 36500*units.Day),
			doc: retentionDoc + " Empty: that of the shortest built-in period that is at least as long."},
		latenessOption(section, p),
	}
}

// latenessOption returns the setting for how long after their end a period's windows accept events.
func latenessOption(section string, p *Period) option {
	return option{Key: section + ".lateness", value: optionalDuration(&p.Lateness, 36500*units.Day),
		doc: "How long after its end a window accepts events, by record time. Empty: `lateness`."}
}

const instantRule = "a time such as 2026-12-01T00:00:00Z"

func instantText(text string) error {
	if _, err := instant(text); err != nil {
		return errors.New("must be " + instantRule)
	}
	return nil
}

// instant returns a time in Unix ms.
func instant(text string) (int64, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, err
	}
	return t.UnixMilli(), nil
}

func orNone(ok func(string) error) func(string) error {
	return func(text string) error {
		if text == "" {
			return nil
		}
		return ok(text)
	}
}

// ownPeriods returns the names of the periods that the file or the environment defines, in order. declared has
// the variables of all other settings.
func ownPeriods(inFile map[string]any, environ []string, declared map[string]string) []periods.Period {
	own := map[periods.Period]bool{}
	for key := range inFile {
		if name, setting := ownSetting(key); name != "" && name.Length() == 0 && slices.Contains(kindSettings, setting) {
			own[name] = true
		}
	}
	const section = Prefix + "PERIODS_"
	weeks := map[string]bool{} // ….WEEK_START is week_start of one period, or start of another
	for _, pair := range environ {
		variable, text, _ := strings.Cut(pair, "=")
		rest, ours := strings.CutPrefix(variable, section)
		if _, known := declared[variable]; known || !ours || text == "" {
			continue
		}
		for _, setting := range kindSettings {
			name, ok := strings.CutSuffix(rest, "_"+strings.ToUpper(setting))
			switch p := ofVariable(name); {
			case !ok || name == "" || p.Length() != 0:
			case setting == "start" && strings.HasSuffix(name, "_WEEK"):
				weeks[name] = true
			default:
				own[p] = true
			}
		}
	}
	for name := range weeks {
		if p := ofVariable(strings.TrimSuffix(name, "_WEEK")); !own[p] && p.Length() == 0 {
			own[ofVariable(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(own))
}

// ofVariable returns a period's name from its part of a variable's name.
func ofVariable(part string) periods.Period {
	return periods.Period(strings.ReplaceAll(strings.ToLower(part), "_", "-"))
}

// ownSetting splits the key of a period's setting.
func ownSetting(key string) (name periods.Period, setting string) {
	rest, ok := strings.CutPrefix(key, "periods.")
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", ""
	}
	return periods.Period(rest[:i]), rest[i+1:]
}

// complete sets the retention of own periods that have none. It leaves errors to validate.
func (c *Config) complete() {
	for i := range c.Periods {
		p := &c.Periods[i]
		if p.Own == nil || p.Retention != 0 {
			continue
		}
		if rule, err := c.Rule(p); err == nil {
			p.Retention = rule.Retention()
		}
	}
}

// Rule returns the rule that divides time into a period's windows.
func (c *Config) Rule(p *Period) (periods.Rule, error) {
	zone, week := c.TimeZone, c.WeekStart
	if o := p.Own; o != nil {
		switch {
		case o.Start != "" || o.End != "":
			start, wrongStart := instant(o.Start)
			end, wrongEnd := instant(o.End)
			if err := errors.Join(wrongStart, wrongEnd); err != nil {
				return periods.Rule{}, fmt.Errorf("start and end of periods.%s: %w", p.Name, err)
			}
			return periods.Season(p.Name, start, end)
		case o.Every != 0 || o.From != "":
			from, err := instant(o.From)
			if err != nil {
				return periods.Rule{}, fmt.Errorf("periods.%s.from: %w", p.Name, err)
			}
			return periods.Stretches(p.Name, o.Every, from)
		}
		if o.TimeZone != "" {
			zone = o.TimeZone
		}
		if o.WeekStart != "" {
			week = o.WeekStart
		}
	}
	calendar, err := periods.NewCalendar(zone, week)
	if err != nil {
		return periods.Rule{}, fmt.Errorf("time_zone and week_start: %w", err)
	}
	if p.Own != nil {
		return periods.ByCalendar(p.Name, periods.Period(p.Own.Calendar), calendar)
	}
	return periods.ByCalendar(p.Name, p.Name, calendar)
}

// ZoneOf returns the name of the time zone in which a period's times are shown: its calendar's, or that of the
// configuration.
func (c *Config) ZoneOf(name periods.Period) string {
	for _, p := range c.Periods {
		if p.Name == name && p.Own != nil && p.Own.TimeZone != "" {
			return p.Own.TimeZone
		}
	}
	return c.TimeZone
}

// LatenessOf returns how long after their end a period's windows accept events.
func (c *Config) LatenessOf(p *Period) time.Duration {
	if p.Lateness != nil {
		return *p.Lateness
	}
	return c.Lateness
}

// Kept returns the enabled periods.
func (c *Config) Kept() []*Period {
	var kept []*Period
	for i := range c.Periods {
		if c.Periods[i].Enabled {
			kept = append(kept, &c.Periods[i])
		}
	}
	return kept
}

// validateOwn checks that the settings of each own period go together, and that the period is possible.
func validateOwn(cfg *Config, complain func(key, problem string, args ...any)) {
	for i := range cfg.Periods {
		p := &cfg.Periods[i]
		o, section := p.Own, "periods."+string(p.Name)
		if o == nil {
			continue
		}
		if err := periods.CheckName(p.Name); err != nil {
			complain(section+".enabled", "has an invalid period name: %v", err)
			continue
		}
		season, stretches, calendar := o.Start != "" || o.End != "", o.Every != 0 || o.From != "", o.Calendar != ""
		switch {
		case calendar && season, calendar && stretches:
			complain(section+".calendar", "conflicts with settings of another kind: use %s", kindsText)
		case season && stretches:
			complain(section+".every", "conflicts with start and end: use %s", kindsText)
		case !calendar && !season && !stretches:
			complain(section+".enabled", "has no windows: use %s", kindsText)
		case !calendar && o.TimeZone != "":
			complain(section+".time_zone", "requires calendar; start, end and from contain their own zone")
		case !calendar && o.WeekStart != "":
			complain(section+".week_start", "requires calendar")
		case season && o.Start == "":
			complain(section+".start", "is missing: a season requires start and end")
		case season && o.End == "":
			complain(section+".end", "is missing: a season requires start and end")
		case stretches && o.Every == 0:
			complain(section+".every", "is missing: it is the length of a window, such as 72h")
		case stretches && o.From == "":
			complain(section+".from", "is missing: it is the start of the first window, such as 2026-01-01T00:00:00Z")
		default:
			validateRule(cfg, p, complain)
		}
	}
	if kept := len(cfg.Kept()); kept > fold.MaxPeriods {
		complain("periods."+string(cfg.Kept()[fold.MaxPeriods].Name)+".enabled", "is one of %d periods: at most %d can be enabled", kept, fold.MaxPeriods)
	}
}

// validateRule checks that the windows of a period of one kind are possible.
func validateRule(cfg *Config, p *Period, complain func(key, problem string, args ...any)) {
	section := "periods." + string(p.Name)
	rule, err := cfg.Rule(p)
	if err != nil {
		key := section + ".calendar"
		switch {
		case p.Own.End != "":
			key = section + ".end"
		case p.Own.From != "":
			key = section + ".every"
		}
		complain(key, "is invalid: %v", err)
		return
	}
	if p.Own.Every != 0 && p.Retention/rule.Length() > mostWindows {
		complain(section+".every", "results in %d windows per board with retention %s, at most %d are possible: raise it or lower periods.%s.retention",
			p.Retention/rule.Length(), units.FormatDuration(p.Retention), mostWindows, p.Name)
	}
}

// KnowsPeriod returns an error if no configured period, enabled or not, has this name.
func (c *Config) KnowsPeriod(name string) error {
	var own []string
	for i := range c.Periods {
		if string(c.Periods[i].Name) == name {
			return nil
		}
		if c.Periods[i].Own != nil {
			own = append(own, string(c.Periods[i].Name))
		}
	}
	_, err := periods.Parse(name)
	if err != nil && len(own) > 0 {
		err = fmt.Errorf("%w, %s", err, strings.Join(own, ", "))
	}
	return err
}

// Calendar returns the calendar of time_zone and week_start.
func (c *Config) Calendar() (periods.Calendar, error) {
	calendar, err := periods.NewCalendar(c.TimeZone, c.WeekStart)
	if err != nil {
		return periods.Calendar{}, fmt.Errorf("time_zone and week_start: %w", err)
	}
	return calendar, nil
}

// Retentions returns how long after its end a window of each enabled period stays in Redis.
func (c *Config) Retentions() map[periods.Period]time.Duration {
	all := map[periods.Period]time.Duration{}
	for _, p := range c.Kept() {
		all[p.Name] = p.Retention
	}
	return all
}
