package config

// The configured layouts: how many bits points leave for time.

import (
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/internal/units"
)

// Layout returns the layout of a period's scores.
func (c *Config) Layout(p Period) (codec.Layout, error) {
	rule, err := c.Rule(&p)
	if err != nil {
		return codec.Layout{}, err
	}
	return codec.New(codec.Kind(p.Layout), rule.Length(), c.MaxPoints)
}

// LayoutReport describes the layout of an enabled period, as `consumer config` shows it.
type LayoutReport struct {
	Period    string `json:"period"`
	Layout    string `json:"layout"`
	K         int    `json:"k"`
	TickMS    int64  `json:"tick_ms"`
	MinPoints int64  `json:"min_points"`
	MaxPoints int64  `json:"max_points"`
	Retention string `json:"retention"`
	Lateness  string `json:"lateness"`
	Windows   string `json:"windows"` // the rule that decides them
	// Current and Next are windows by this machine's clock. A season that has not started has only Next; a
	// season that has ended has neither.
	Current *Window `json:"current"`
	Next    *Window `json:"next"`
}

// Window describes a window.
type Window struct {
	Name  string `json:"name"`
	Start string `json:"start"` // RFC 3339
	End   string `json:"end"`
}

func windowReport(w periods.Window, ok bool) *Window {
	if !ok {
		return nil
	}
	return &Window{w.Name, units.TimeMS(w.Start), units.TimeMS(w.End)}
}

// windowsAt returns the current window and the next one.
func windowsAt(r *periods.Rule, now time.Time) (current, next *Window) {
	w, place, err := r.At(now.UnixMilli())
	switch {
	case err != nil || place == periods.After:
		return nil, nil
	case place == periods.Before:
		return nil, windowReport(r.First())
	}
	return windowReport(w, true), windowReport(r.Next(w))
}

// BoardReport describes a board of a section, as `consumer config` shows it.
type BoardReport struct {
	Board   string              `json:"board"`
	Rule    string              `json:"rule"`
	Score   string              `json:"score"`
	Fields  []FieldReport       `json:"fields"`
	Layouts []BoardLayoutReport `json:"layouts"`
}

// FieldReport describes a field of a board.
type FieldReport struct {
	Name  string `json:"name"`
	Min   int64  `json:"min"`
	Max   int64  `json:"max"`
	Order string `json:"order"`
}

// BoardLayoutReport describes the layout of a period for a board's fields.
type BoardLayoutReport struct {
	Period  string `json:"period"`
	Layout  string `json:"layout"`
	K       int    `json:"k"`
	TickMS  int64  `json:"tick_ms"`
	Largest int64  `json:"largest"` // the largest packed value
}

// BoardReports returns reports on the boards of the section, by name, and warnings about probable mistakes.
func (c *Config) BoardReports() (reports []BoardReport, warnings []string, err error) {
	all, err := c.Ruled()
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		rule := b.Rule
		if rule == nil {
			usual, err := rules.Default(c.MaxPoints)
			if err != nil {
				return nil, nil, fmt.Errorf("max_points: %w", err)
			}
			rule = &usual
		}
		r := BoardReport{Board: b.Name, Rule: rule.Text(), Score: string(rule.Score), Layouts: []BoardLayoutReport{}}
		for _, f := range rule.Fields.List() {
			one := FieldReport{Name: f.Name, Max: f.Max, Order: orderMost}
			if f.Signed {
				one.Min = -f.Max
			}
			if f.Fewest {
				one.Order = orderFewest
			}
			r.Fields = append(r.Fields, one)
		}
		for _, p := range b.Periods {
			l := b.Layouts[p.Name]
			r.Layouts = append(r.Layouts, BoardLayoutReport{string(p.Name), string(l.Packing.Kind), l.K, l.Tick, l.Packing.Max})
			if b.Rule != nil && l.Coarse() {
				warnings = append(warnings, coarse(p, " of board "+b.Name, "lower max of its fields", l.Packing.Kind, l.Tick))
			}
		}
		reports = append(reports, r)
	}
	return reports, warnings, nil
}

// Layouts returns reports on the layouts and windows of the enabled periods at a time, and warnings about
// probable mistakes. Each warning ends in a remedy, after its last "; ". The configuration must be valid.
func (c *Config) Layouts(now time.Time) (reports []LayoutReport, warnings []string, err error) {
	warnings = c.insecure()
	for _, p := range c.Periods {
		if !p.Enabled {
			continue
		}
		rule, err := c.Rule(&p)
		if err != nil {
			return nil, nil, err
		}
		layout, err := c.Layout(p)
		if err != nil {
			return nil, nil, fmt.Errorf("lay out %s scores: %w", p.Name, err)
		}
		lateness := c.LatenessOf(&p)
		current, next := windowsAt(&rule, now)
		reports = append(reports, LayoutReport{
			Lateness: units.FormatDuration(lateness), Windows: rule.String(), Current: current, Next: next,
			Period: string(p.Name), Layout: string(layout.Kind), K: layout.K, TickMS: layout.Tick,
			MinPoints: -layout.Max, MaxPoints: layout.Max, Retention: units.FormatDuration(p.Retention),
		})
		if layout.Coarse() {
			warnings = append(warnings, coarse(p, "", "lower max_points", layout.Kind, layout.Tick))
		}
		if p.Retention < lateness {
			warnings = append(warnings, fmt.Sprintf("%s windows are removed %s after their end, but accept events for %s; raise periods.%s.retention or lower lateness",
				p.Name, units.FormatDuration(p.Retention), units.FormatDuration(lateness), p.Name))
		}
		if n := p.Retention / rule.Length(); n > manyWindows {
			warnings = append(warnings, fmt.Sprintf("%s has up to %d windows per board, but max_windows is %d; lower periods.%s.retention", p.Name, n, c.MaxWindows, p.Name))
		}
	}
	_, more, err := c.BoardReports()
	return reports, append(warnings, more...), err
}

// coarse returns the warning about scores with a long tick. of names their board; it is empty for the default
// rule.
func coarse(p Period, of, remedy string, kind codec.Kind, tick int64) string {
	if kind == codec.Readable {
		remedy += fmt.Sprintf(", or set periods.%s.layout to wide", p.Name)
	}
	return fmt.Sprintf("%s scores%s have a resolution of %s: of two members with equal points within that time, the wrong one may rank first; %s",
		p.Name, of, units.FormatDuration(time.Duration(tick)*time.Millisecond), remedy)
}

// insecure returns warnings about connections that an attacker can read or change.
func (c *Config) insecure() (warnings []string) {
	if c.Kafka.SASL.Mechanism == "plain" && !c.Kafka.TLS.Enabled {
		warnings = append(warnings, "kafka.sasl.mechanism is plain and kafka.tls.enabled is false: the password is sent in clear text; "+
			"enable TLS, or use scram-sha-512")
	}
	for side, t := range map[string]TLS{"kafka": c.Kafka.TLS, "redis": c.Redis.TLS} {
		if t.Enabled && t.SkipVerify {
			warnings = append(warnings, side+".tls.skip_verify is true: an attacker in between can read and change everything; set "+side+".tls.ca_file instead")
		}
	}
	slices.Sort(warnings)
	return warnings
}
