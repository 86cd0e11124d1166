package config

// What the settings come to in the words of those who count: the calendar, the
// windows that are kept, and what an event has to keep to.

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/event"
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

// EventRules are what an event has to keep to, and where its fields stand.
func (c *Config) EventRules() (event.Rules, error) {
	fields, err := event.NewFields(c.Fields, c.Others...)
	if err != nil {
		return event.Rules{}, fmt.Errorf("event.fields: %w", err)
	}
	others, err := c.Rules()
	if err != nil {
		return event.Rules{}, err
	}
	return event.Rules{
		MaxEventBytes: int(c.MaxEventBytes), MaxPoints: c.MaxPoints,
		MaxFuture: c.MaxFuture.Milliseconds(), Boards: c.Boards, Fields: fields, Others: others,
	}, nil
}
