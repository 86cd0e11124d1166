package ingest

// Rules that change from one owner of a partition to the next: what an owner began by its
// rules, whoever comes next finishes by the same.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
)

// ruled gives a consumer's configuration rules with a name for their text, by which all
// consumers of the test know them. There are so many of them that they share what is known.
type ruled map[string]Config

func (all ruled) by(c *Config, name string, change func(*Config)) {
	change(c)
	all[name] = *c
	c.RulesText = name
	c.ReadRules = func(text string) (Counting, error) {
		if of, ok := all[text]; ok {
			return Counting{of.Events, of.Rules, of.Duplicates}, nil
		}
		return Counting{}, fmt.Errorf("no rules are called %q", text)
	}
}

// told are n events that several rules read differently: by user_id or by player, with a board
// that may be configured or not, and for every third with a time of ten minutes ahead.
func told(n int) (values [][]byte, times []int64) {
	now := time.Now().UnixMilli()
	for i := range n {
		at := now + int64(i)
		if i%3 == 0 {
			at += (10 * time.Minute).Milliseconds()
		}
		board := "global"
		if i%2 == 0 {
			board = "eu"
		}
		values = append(values, fmt.Appendf(nil, `{"user_id":"u%d","player":"p%d","points":5,"occurred_at":%d,"board":%q}`, i, i, at, board))
		times = append(times, at)
	}
	return values, times
}

func TestASweepIsFinishedByTheRulesThatItWasBegunBy(t *testing.T) {
	t.Parallel()
	byPlayer, err := event.NewFields(event.Paths{UserID: "player"})
	require.NoError(t, err)
	for name, next := range map[string]func(*Config){
		"another field":       func(c *Config) { c.Events.Fields = byPlayer },
		"fewer boards":        func(c *Config) { c.Events.Boards = []string{"global"} },
		"a later max_future":  func(c *Config) { c.Events.MaxFuture = time.Hour.Milliseconds() },
		"shorter values only": func(c *Config) { c.Events.MaxEventBytes = 10 },
		"fewer periods":       func(c *Config) { c.Rules.Periods = c.Rules.Periods[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			const n = 1000
			values, times := told(n)
			for i, v := range values {
				if i%3 == 0 {
					continue
				}
				board := "global"
				if i%2 == 0 {
					board = "eu"
				}
				w.counts(earned{User: fmt.Sprint("u", i), Points: 5, At: times[i], Board: board})
				_ = v
			}
			w.sendAll(0, values)
			all := ruled{}
			all.by(&w.config, "old", func(*Config) {})
			w.sweepHalfway()
			own := w.config
			all.by(&own, "own", next)
			w.worker(0, func(c *Config) { *c = own })
			w.reaches(0)
		})
	}
}
