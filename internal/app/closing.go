package app

// When a window closes, and how the archive describes windows, by the configuration.

import (
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Lateness returns a function for how long after its end a window accepts events. The function reports false if
// the window's period is not enabled.
func Lateness(cfg *config.Config) func(ledger.Window) (time.Duration, bool) {
	all := map[string]time.Duration{}
	for _, p := range cfg.Kept() {
		all[string(p.Name)] = cfg.LatenessOf(p)
	}
	return func(w ledger.Window) (time.Duration, bool) {
		late, ok := all[w.Period]
		return late, ok
	}
}

// Zones returns a function for the time zone in which a period's times are shown.
func Zones(cfg *config.Config) func(period string) string {
	return func(period string) string { return cfg.ZoneOf(periods.Period(period)) }
}

// ArchivedFields returns a function for a board's fields. The function returns nil for a board with the default
// rule.
func ArchivedFields(cfg *config.Config) (func(board string) []codec.Field, error) {
	own, err := cfg.Rules()
	if err != nil {
		return nil, err
	}
	return func(board string) []codec.Field {
		if r := own.Of(board); r != nil {
			return r.Fields.List()
		}
		return nil
	}, nil
}
