package config

// What the configured layouts come to: how much room points leave for time.

import (
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
)

// Layout is the layout that a period's scores are written in.
func (c *Config) Layout(p Period) (codec.Layout, error) {
	rule, err := c.Rule(&p)
	if err != nil {
		return codec.Layout{}, err
	}
	return codec.New(codec.Kind(p.Layout), rule.Length(), c.MaxPoints)
}

// LayoutReport is one enabled period's layout, as `consumer config` shows it.
type LayoutReport struct {
	Period    string `json:"period"`
	Layout    string `json:"layout"`
	K         int    `json:"k"`
	TickMS    int64  `json:"tick_ms"`
	MinPoints int64  `json:"min_points"`
	MaxPoints int64  `json:"max_points"`
	Retention string `json:"retention"`
	Lateness  string `json:"lateness"`
	Windows   string `json:"windows"` // what decides them
	// Current and Next are windows by this machine's clock: of a season that hasn't begun there is
	// only a next one, of one that is over none.
	Current *Window `json:"current"`
	Next    *Window `json:"next"`
}

// Window is a window in words.
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

// windowsAt are the window at a moment, and the one after it.
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

// Layouts works out the enabled periods' layouts and windows as of a moment, and says what an operator may not have
// meant: each warning ends in what to do, after its last "; ". The configuration is valid.
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
			warnings = append(warnings, coarse(p, layout))
		}
		if p.Retention < lateness {
			warnings = append(warnings, fmt.Sprintf("%s windows are gone %s after their end, but take events for %s; raise periods.%s.retention or lower lateness",
				p.Name, units.FormatDuration(p.Retention), units.FormatDuration(lateness), p.Name))
		}
		if n := p.Retention / rule.Length(); n > manyWindows {
			warnings = append(warnings, fmt.Sprintf("%s keeps %d windows of each board, and max_windows is %d; lower periods.%s.retention", p.Name, n, c.MaxWindows, p.Name))
		}
	}
	return reports, warnings, nil
}

func coarse(p Period, layout codec.Layout) string {
	remedy := "lower max_points"
	if layout.Kind == codec.Readable {
		remedy += fmt.Sprintf(", or set periods.%s.layout to wide", p.Name)
	}
	tick := time.Duration(layout.Tick) * time.Millisecond
	return fmt.Sprintf("%s scores tell apart only times %s from each other: who was first among equals may come out wrong within that; %s",
		p.Name, units.FormatDuration(tick), remedy)
}

// insecure says which connections others can read or change.
func (c *Config) insecure() (warnings []string) {
	if c.Kafka.SASL.Mechanism == "plain" && !c.Kafka.TLS.Enabled {
		warnings = append(warnings, "kafka.sasl.mechanism is plain and kafka.tls.enabled is false: the password goes over the network for all to read; "+
			"enable TLS, or use scram-sha-512")
	}
	for side, t := range map[string]TLS{"kafka": c.Kafka.TLS, "redis": c.Redis.TLS} {
		if t.Enabled && t.SkipVerify {
			warnings = append(warnings, side+".tls.skip_verify is true: whoever sits between can read and change everything; set "+side+".tls.ca_file instead")
		}
	}
	slices.Sort(warnings)
	return warnings
}
