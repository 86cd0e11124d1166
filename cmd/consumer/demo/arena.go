package demo

// This file defines the demo's board with a rule of its own: the furthest stage in a run, with the fewest
// revives.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/sample"
)

const (
	arena       = "arena"
	arenaPeriod = "weekly"
	arenaEvery  = 20 // one event in arenaEvery is a run
	mostStage   = 999
	mostRevives = 99

	// boardsFile is the demo's configuration, without the settings that depend on its servers.
	boardsFile = `boards:
  ` + arena + `:                  # the furthest stage, then the fewest revives, then the earliest
    score: best
    fields:
      - {name: stage, max: 999}
      - {name: revives, max: 99, order: fewest}
    periods: [` + arenaPeriod + `]
  "*": {}                 # every other board sums points
`
)

func (s *servers) configPath() string { return filepath.Join(s.dir, "standings.yaml") }

// configure writes the demo's configuration file and loads it, as other commands do.
func (s *servers) configure() error {
	if err := os.WriteFile(s.configPath(), []byte(boardsFile), 0o600); err != nil {
		return fmt.Errorf("write the demo's configuration: %w", err)
	}
	l, err := config.Load(s.configPath(), nil)
	if err != nil {
		return err
	}
	s.cfg = l.Config
	return nil
}

// idEnd is the offset at which the id of a sample event ends, including its quote.
const idEnd = len(`{"event_id":"`) + 32 + len(`"`)

// appendRun turns a valid event into a run in the arena, with the same id and member and the record's time.
// There are few stages, so that revives often decide.
func appendRun(buf []byte, luck *rand.Rand, e *sample.Event) []byte {
	stage := min(mostStage, 1+int(luck.ExpFloat64()*6))
	revives := min(mostRevives, int(luck.ExpFloat64()*3))
	buf = append(append(buf, e.Value[:idEnd]...), `,"board":"`+arena+`","user_id":"`...)
	buf = append(append(buf, e.Key...), `","stage":`...)
	buf = append(strconv.AppendInt(buf, int64(stage), 10), `,"revives":`...)
	return append(strconv.AppendInt(buf, int64(revives), 10), '}')
}
