package app

// What closes a window, and what the archive says of it, as the configuration has it.

import (
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Lateness is how long after its end a window takes events; false where it is none of a period that
// is kept.
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

// Zones are what the times of the periods are shown in.
func Zones(cfg *config.Config) func(period string) string {
	return func(period string) string { return cfg.ZoneOf(periods.Period(period)) }
}

// ArchivedFields are those of boards by a rule of their own; nil of others.
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
