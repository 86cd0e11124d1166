package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/config"
)

// What counts is what the text of the rules says, so it says all of a board.
func TestTheTextOfTheRulesHasEachBoardsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "standings.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
event:
  fields: {stage: run.stage}
boards:
  global: {}
  arena: {score: best, fields: [{name: stage, max: 999}, {name: revives, max: 99, order: fewest}], periods: [weekly, yearly]}
  elo: {score: last, fields: [{name: elo, max: 4000}]}
  cup: {score: best, fields: [{name: stage, max: 999}, {name: revives, max: 99, order: fewest}]}
`), 0o600))
	l, err := config.Load(path, nil)
	require.NoError(t, err)
	set, err := RuleSet(l.Config)
	require.NoError(t, err)
	got, err := Counting(set.Text(), l.Config)
	require.NoError(t, err)
	events, err := l.Config.EventRules()
	require.NoError(t, err)
	require.Equal(t, events.Boards, got.Events.Boards)
	require.Equal(t, events.Others, got.Events.Others)
	require.Equal(t, events.Fields, got.Events.Fields)
	windows, err := FoldRules(l.Config)
	require.NoError(t, err)
	require.Equal(t, windows, got.Windows)
	require.Same(t, got.Windows.Boards["arena"].Rule, got.Windows.Boards["cup"].Rule)
}
