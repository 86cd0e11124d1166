package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/periods"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "standings.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Counting uses the text of the rules alone, so the text must have everything about a board.
func TestTheTextOfTheRulesHasEachBoardsOwn(t *testing.T) {
	l, err := config.Load(writeConfig(t, `
event:
  fields: {stage: run.stage}
boards:
  global: {}
  arena: {score: best, fields: [{name: stage, max: 999}, {name: revives, max: 99, order: fewest}], periods: [weekly, yearly]}
  elo: {score: last, fields: [{name: elo, max: 4000}]}
  cup: {score: best, fields: [{name: stage, max: 999}, {name: revives, max: 99, order: fewest}]}
`), nil)
	require.NoError(t, err)
	got, err := CountingOf(l.Config)
	require.NoError(t, err)
	require.Equal(t, []string{"arena", "cup", "elo", "global"}, got.Events.Boards)
	others, err := l.Config.Rules()
	require.NoError(t, err)
	require.Equal(t, others, got.Events.Others)
	fields, err := event.NewFields(l.Config.Fields, l.Config.Others...)
	require.NoError(t, err)
	require.Equal(t, fields, got.Events.Fields)
	all, err := l.Config.Ruled()
	require.NoError(t, err)
	require.Len(t, got.Windows.Boards, len(all))
	for _, b := range all {
		board := got.Windows.Boards[b.Name]
		require.Equal(t, b.Rule, board.Rule)
		ticks := map[periods.Period]int64{}
		for _, p := range b.Periods {
			ticks[p.Name] = b.Layouts[p.Name].Tick
		}
		require.Equal(t, ticks, board.Ticks)
	}
	require.Equal(t, uint32(0b101), got.Windows.Boards["arena"].Periods)
	require.Equal(t, uint32(0b111), got.Windows.Boards["global"].Periods)
	require.Same(t, got.Windows.Boards["arena"].Rule, got.Windows.Boards["cup"].Rule)
}
