package ingest

// This file tests rules that change from one owner of a partition to the next: a sweep is finished by the rules
// by which it was started.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ledger"
)

// ruled maps the names that stand for rule texts to configurations. All consumers of the test parse the texts
// through it.
type ruled map[string]Config

func (all ruled) by(c *Config, name string, change func(*Config)) {
	change(c)
	all[name] = *c
	c.RulesText = name
	c.ReadRules = func(text string) (rulebook.Counting, error) {
		if of, ok := all[text]; ok {
			return rulebook.Counting{Events: of.Events, Windows: of.Rules, Duplicates: of.Duplicates}, nil
		}
		return rulebook.Counting{}, fmt.Errorf("no rules are called %q", text)
	}
}

// told returns n events that different rules read differently: by user_id or by player, with a board that may
// be configured or not, and every third with a time ten minutes ahead.
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

// someRules makes a world's consumers use rules named old, and returns the configuration of a successor.
func someRules(t *testing.T, w *world) (all ruled, own Config) {
	t.Helper()
	all = ruled{}
	all.by(&w.config, "old", func(*Config) {})
	own = w.config
	byPlayer, err := event.NewFields(event.Paths{UserID: "player"})
	require.NoError(t, err)
	all.by(&own, "own", func(c *Config) { c.Events.Fields = byPlayer })
	return all, own
}

func TestASweepByRulesThatAreNotKnownHaltsUntilTheyAre(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(*fakeShard, ruled){
		"something else removed it":       func(s *fakeShard, _ ruled) { s.rules = map[string]string{} },
		"their text in Redis was changed": func(s *fakeShard, _ ruled) { s.rules[rulebook.FingerprintOf("old").String()] = "other" },
		"cannot use: no rules are called": func(_ *fakeShard, all ruled) { delete(all, "old") },
		"takes a fold_memory of": func(_ *fakeShard, all ruled) {
			c := all["old"]
			c.Events.MaxEventBytes = 64 << 20
			all["old"] = c
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			values, _ := told(1000)
			w.sendAll(values)
			all, own := someRules(t, w)
			w.sweepHalfway()
			was := w.standings.at(0)
			w.standings.do(func() {
				for _, s := range w.standings.shards {
					damage(s, all)
				}
			})
			r := w.worker(0, func(c *Config) { *c = own })
			eventually(t, "it halts", func() bool { l, _, _ := r.status.Shown(); return l.Reason == "rules" })
			l, _, _ := r.status.Shown()
			require.Contains(t, l.What, want)
			require.Contains(t, l.Remedy, "start a consumer")
			require.Equal(t, was, w.standings.at(0))
			r.stop(t)

			w.worker(0, nil) // the sweep's rules are this worker's own
			eventually(t, "the sweep is through", func() bool { return w.standings.at(0) == "1000" })
		})
	}
}

func TestASweepOfAVersionThatNotedNoRulesIsFinishedByOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 1000, 5)...)
	w.sweepHalfway()
	require.NotContains(t, w.standings.at(0), "#")
	someRules(t, w)
	w.worker(0, nil)
	w.reaches(0)
	w.said(1, "a version that didn't note its rules began this sweep: finishing it by this process's")
}

// Events that one shard has and another lacks are read by the rules by which the first shard was moved, also if
// no sweep is in progress.
func TestAShardThatIsBehindIsBroughtAlongByTheRulesOfTheOthers(t *testing.T) {
	t.Parallel()
	if of == 1 {
		t.Skip("there is no other shard")
	}
	w := newWorld(t, 1)
	values, times := told(1000)
	for i := range values {
		if i%3 != 0 {
			w.counts(earned{User: fmt.Sprint("u", i), Points: 5, At: times[i], Board: []string{"eu", "global"}[i%2]})
		}
	}
	w.sendAll(values)
	_, own := someRules(t, w)
	away := w.standings.shards[1]
	w.standings.apply = func(_ int, p *ledger.Piece) reply {
		for _, g := range p.Groups {
			for _, m := range g.Members {
				if away.of().Of(fold.Hash(m.ID)) == away.shard {
					return reply{err: errLost}
				}
			}
		}
		return reply{}
	}
	first := w.worker(0, func(c *Config) { c.FetchBytes = 8 << 20 })
	eventually(t, "all others are through", func() bool {
		all, err := w.standings.positions(0)
		if err != nil { // some shards haven't started
			return false
		}
		for i, at := range all {
			if i != away.shard && at != ledger.At(1000) {
				return false
			}
		}
		return true
	})
	first.stop(t)
	w.standings.apply = nil
	w.worker(0, func(c *Config) { *c = own })
	w.reaches(0)
	require.Positive(t, w.stats.OtherRules.Load())

	at := time.Now().UnixMilli()
	w.counts(earned{User: "p", Points: 7, At: at})
	w.sendRaw(0, fmt.Appendf(nil, `{"user_id":"u","player":"p","points":7,"occurred_at":%d}`, at))
	w.reaches(0) // by the worker's own rules
}

func TestTextsOfRulesThatNothingIsByGoWithTheNextGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	_, own := someRules(t, w)
	texts := func() (n int) {
		w.standings.do(func() {
			for _, s := range w.standings.shards {
				for name := range s.rules {
					if name == rulebook.FingerprintOf("old").String() {
						n++
					}
				}
			}
		})
		return n
	}
	w.send(0, some("a", 100, 5)...)
	_, stop := w.consumer(nil)
	w.reaches(0)
	require.NoError(t, stop())
	require.Equal(t, int(of), texts())
	w.sendAll([][]byte{fmt.Appendf(nil, `{"player":"p","points":7,"occurred_at":%d}`, time.Now().UnixMilli())})
	_, stop = w.consumer(func(c *Config) { *c = own })
	eventually(t, "it is through", func() bool { return w.standings.at(0) == "101" })
	require.NoError(t, stop())
	w.consumer(func(c *Config) { *c = own })
	eventually(t, "they are gone", func() bool { return texts() < int(of) })
}
