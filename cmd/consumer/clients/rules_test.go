package clients

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/config"
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

		counting, err := ReadRules(text, c.Retentions())
		require.NoError(t, err)
		want, err := c.EventRules()
		require.NoError(t, err)
		slices.Sort(want.Boards)
		require.Equal(t, want, counting.Events)
		wanted, err := FoldRules(c)
		require.NoError(t, err)
		require.Equal(t, wanted, counting.Windows)
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
	kept := c.Retentions()
	for want, change := range map[string]func(*rules.Set){
		"isn't enabled here": func(*rules.Set) { delete(kept, periods.Monthly) },
		"a rule of its own": func(s *rules.Set) {
			b := s.Boards[rules.AnyBoard]
			rule, err := rules.New(rules.Best, b.Rule.Fields)
			require.NoError(t, err)
			s.Boards["arena"] = rules.Board{Rule: rule, Periods: b.Periods}
		},
		"beside those that are": func(s *rules.Set) { s.Boards["arena"] = s.Boards[rules.AnyBoard] },
		"periods of its own": func(s *rules.Set) {
			b := s.Boards[rules.AnyBoard]
			s.Boards["arena"] = rules.Board{Rule: b.Rule, Periods: b.Periods[:1]}
		},
		"no board has": func(s *rules.Set) { s.Boards = map[string]rules.Board{} },
		"no field":     func(s *rules.Set) { s.Fields["lap"] = "lap" },
		"event.fields": func(s *rules.Set) { s.Fields["user_id"] = "." },
	} {
		s, err := rules.Parse(set.Text())
		require.NoError(t, err)
		kept = c.Retentions()
		change(&s)
		_, err = ReadRules(s.Text(), kept)
		require.ErrorContains(t, err, want)
	}
	_, err = ReadRules(`{"v":2}`, kept)
	require.Error(t, err)
}
