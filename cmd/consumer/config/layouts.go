package config

// What the configured layouts come to: how much room points leave for time.

import (
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/codec"
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
}

// Layouts works out the enabled periods' layouts, and says what an operator may not have
// meant: each warning ends in what to do, after its last "; ". The configuration is valid.
func (c *Config) Layouts() (reports []LayoutReport, warnings []string, err error) {
	warnings = c.insecure()
	for _, p := range c.Periods {
		if !p.Enabled {
			continue
		}
		layout, err := c.Layout(p)
		if err != nil {
			return nil, nil, fmt.Errorf("lay out %s scores: %w", p.Name, err)
		}
		reports = append(reports, LayoutReport{
			Period: string(p.Name), Layout: string(layout.Kind), K: layout.K, TickMS: layout.Tick,
			MinPoints: -layout.Max, MaxPoints: layout.Max, Retention: units.FormatDuration(p.Retention),
		})
		if layout.Coarse() {
			warnings = append(warnings, coarse(p, layout))
		}
		lateness := c.LatenessOf(&p)
		if p.Retention < lateness {
			warnings = append(warnings, fmt.Sprintf("%s windows are gone %s after their end, but take events for %s; raise periods.%s.retention or lower lateness",
				p.Name, units.FormatDuration(p.Retention), units.FormatDuration(lateness), p.Name))
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
