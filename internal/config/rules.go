package config

// What the settings come to in the words of those who count: the calendar and the
// windows that are kept.

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/periods"
)

// Calendar cuts time into windows, by time_zone and week_start.
func (c *Config) Calendar() (periods.Calendar, error) {
	calendar, err := periods.NewCalendar(c.TimeZone, c.WeekStart)
	if err != nil {
		return periods.Calendar{}, fmt.Errorf("time_zone and week_start: %w", err)
	}
	return calendar, nil
}

// Retentions is how long after its end a window of each enabled period lives.
func (c *Config) Retentions() map[periods.Period]time.Duration {
	all := map[periods.Period]time.Duration{}
	for _, p := range c.Kept() {
		all[p.Name] = p.Retention
	}
	return all
}
