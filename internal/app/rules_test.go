package app

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

func textOf(t *testing.T, change func(*config.Config)) (string, *config.Config) {
	t.Helper()
	c := config.Defaults()
	change(c)
	s, err := RuleSet(c)
	require.NoError(t, err)
	return s.Text(), c
}

func TestTheTextOfAConfigurationSaysAllThatCounts(t *testing.T) {
	ours, _ := textOf(t, func(*config.Config) {})
	texts := []string{ours}
	for _, change := range []func(*config.Config){
		func(c *config.Config) { c.Boards = []string{"global", "eu"} },
		func(c *config.Config) { c.Boards = []string{"global"} },
		func(c *config.Config) { c.Fields.UserID = "player.id" },
		func(c *config.Config) { c.Fields.EventID = "id" },
		func(c *config.Config) { c.Fields.Points = "score" },
		func(c *config.Config) { c.Fields.Board = "to" },
		func(c *config.Config) { c.Fields.OccurredAt = "at" },
		func(c *config.Config) { c.MaxFuture = time.Hour },
		func(c *config.Config) { c.MaxEventBytes = 1000 },
		func(c *config.Config) { c.Duplicates = 1000 },
		func(c *config.Config) { c.MaxPoints = 1000 },
		func(c *config.Config) { c.Lateness = time.Hour },
		func(c *config.Config) { c.TimeZone = "Europe/Berlin" },
		func(c *config.Config) { c.WeekStart = "sunday" },
		func(c *config.Config) {
			c.Periods = slices.Clone(c.Periods)
			for i := range c.Periods {
				c.Periods[i].Enabled = c.Periods[i].Name == periods.Daily
			}
		},
	} {
		text, c := textOf(t, change)
		require.NotContains(t, texts, text)
		texts = append(texts, text)

		counting, err := Counting(text, c)
		require.NoError(t, err)
		fields, err := event.NewFields(c.Fields)
		require.NoError(t, err)
		slices.Sort(c.Boards)
		require.Equal(t, event.Rules{MaxEventBytes: int(c.MaxEventBytes), MaxFuture: c.MaxFuture.Milliseconds(), MaxPoints: c.MaxPoints,
			Boards: c.Boards, Fields: fields}, counting.Events)
		var windows fold.Rules
		for _, p := range c.Kept() {
			rule, err := c.Rule(p)
			require.NoError(t, err)
			windows.Periods = append(windows.Periods, fold.Period{Rule: rule, Lateness: c.LatenessOf(p).Milliseconds()})
		}
		require.Equal(t, windows, counting.Windows)
		require.Equal(t, c.Duplicates, counting.Duplicates)
	}
}

func TestWhatTakesNoPartInCountingIsNotInTheText(t *testing.T) {
	ours, _ := textOf(t, func(*config.Config) {})
	for _, change := range []func(*config.Config){
		func(c *config.Config) { c.FoldMemory *= 2 },
		func(c *config.Config) { c.Kafka.Group = "other" },
		func(c *config.Config) { c.OnGap = "continue" },
		func(c *config.Config) {
			c.Periods = slices.Clone(c.Periods)
			c.Periods[0].Retention *= 2
		},
	} {
		text, _ := textOf(t, change)
		require.Equal(t, ours, text)
	}
}

func TestRulesThatCannotBeGoneByAreNamed(t *testing.T) {
	c := config.Defaults()
	set, err := RuleSet(c)
	require.NoError(t, err)
	for want, change := range map[string]func(*rules.Set){
		"the period sprint is not enabled": func(s *rules.Set) { s.Periods["sprint"] = s.Periods[periods.Weekly] },
		`board "arena": weekly scores`: func(s *rules.Set) {
			b := s.Boards[rules.AnyBoard]
			var fields []codec.Field
			for _, name := range []string{"a", "b"} {
				fields = append(fields, codec.Field{Name: name, Max: 90_000_000})
			}
			all, err := codec.NewFields(fields...)
			require.NoError(t, err)
			rule, err := rules.New(rules.Best, all)
			require.NoError(t, err)
			s.Boards["arena"] = rules.Board{Rule: rule, Periods: b.Periods}
		},
		"no board":     func(s *rules.Set) { s.Boards = map[string]rules.Board{} },
		"no field":     func(s *rules.Set) { s.Fields["lap"] = "lap" },
		"event.fields": func(s *rules.Set) { s.Fields["user_id"] = "." },
	} {
		s, err := rules.Parse(set.Text())
		require.NoError(t, err)
		change(&s)
		_, err = Counting(s.Text(), c)
		require.ErrorContains(t, err, want)
	}
	_, err = Counting(`{"v":2}`, c)
	require.Error(t, err)
}
