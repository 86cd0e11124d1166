package config

// The settings in the form that the ingest packages use: the calendar and the retentions.

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/periods"
)

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
