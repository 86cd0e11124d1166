package main

// What the configured layouts come to: how much room points leave for time.

import (
	"fmt"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/codec"
)

// layoutOf is the layout that a period's scores are written in.
func layoutOf(cfg *config, p periodConfig) (codec.Layout, error) {
	return codec.New(codec.Kind(p.layout), p.name.Length(), cfg.maxPoints)
}

// layoutReport is one enabled period's layout, as `consumer config` shows it.
type layoutReport struct {
	Period    string `json:"period"`
	Layout    string `json:"layout"`
	K         int    `json:"k"`
	TickMS    int64  `json:"tick_ms"`
	MinPoints int64  `json:"min_points"`
	MaxPoints int64  `json:"max_points"`
	Retention string `json:"retention"`
}

// reportLayouts works out the enabled periods' layouts, and says what an
// operator may not have meant. cfg is valid.
func reportLayouts(cfg *config) (reports []layoutReport, warnings []string, err error) {
	warnings = kafkaWarnings(&cfg.kafka)
	for _, p := range cfg.periods {
		if !p.enabled {
			continue
		}
		layout, err := layoutOf(cfg, p)
		if err != nil {
			return nil, nil, fmt.Errorf("lay out %s scores: %w", p.name, err)
		}
		reports = append(reports, layoutReport{
			Period: string(p.name), Layout: string(layout.Kind), K: layout.K, TickMS: layout.Tick,
			MinPoints: -layout.Max, MaxPoints: layout.Max, Retention: units.FormatDuration(p.retention),
		})
		if layout.Coarse() {
			warnings = append(warnings, coarse(p, layout))
		}
		if p.retention < cfg.lateness {
			warnings = append(warnings, fmt.Sprintf("%s windows are gone %s after their end, but take events for %s: raise periods.%s.retention or lower lateness",
				p.name, units.FormatDuration(p.retention), units.FormatDuration(cfg.lateness), p.name))
		}
	}
	return reports, warnings, nil
}

func coarse(p periodConfig, layout codec.Layout) string {
	remedy := "lower max_points"
	if layout.Kind == codec.Readable {
		remedy += fmt.Sprintf(", or set periods.%s.layout to wide", p.name)
	}
	tick := time.Duration(layout.Tick) * time.Millisecond
	return fmt.Sprintf("%s scores tell apart only times %s from each other: who was first among equals may come out wrong within that; %s",
		p.name, units.FormatDuration(tick), remedy)
}
