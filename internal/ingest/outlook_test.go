package ingest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// located locates as a worker does, with its writes, and returns the positions.
func (w *world) located(c *Consumer, partition int) (ledger.Positions, error) {
	w.t.Helper()
	com := commits.New(func(map[string]map[int]kafkaconn.Commit) error { return nil }, c.Log)
	worker := c.assigned(&group.Generation{Assignments: map[string][]int{topic: {partition}}}, com)[0]
	for {
		at, err := worker.locator.Locate(w.t.Context())
		if err != nil && !errors.Is(err, locate.ErrAgain) {
			return nil, err
		}
		if err == nil {
			return at, nil
		}
	}
}

func TestAnOutlookSaysWhereAWorkerStartsAndWritesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		found  map[string]string // the ledger
		schema string
		boards int
		onGap  start.OnGap
		start  start.Where
		commit map[int]int64
		want   [2]locate.Why
	}{
		{name: "a first start at the beginning", want: [2]locate.Why{locate.First, locate.First}},
		{name: "a first start at the end", start: start.Where{From: start.FromLatest}, want: [2]locate.Why{locate.First, locate.First}},
		{name: "a first start at a window", start: start.Where{From: start.FromWindow}, want: [2]locate.Why{locate.First, locate.First}},
		{name: "a first start at a time", start: start.Where{From: start.FromTime, Time: time.Now().Add(-time.Minute)}, want: [2]locate.Why{locate.First, locate.First}},
		{name: "the ledger", found: map[string]string{"events/0": "25", "events/1": "7"}, want: [2]locate.Why{locate.FromLedger, locate.FromLedger}},
		{name: "a sweep", found: map[string]string{"events/0": "21..25@8f3c000000000000", "events/1": "7"}, want: [2]locate.Why{locate.FromLedger, locate.FromLedger}},
		{name: "a gap", found: map[string]string{"events/0": "10", "events/1": "7"}, want: [2]locate.Why{locate.Halts, locate.FromLedger}},
		{name: "a gap to go on over", found: map[string]string{"events/0": "10", "events/1": "7"}, onGap: start.GapContinues, want: [2]locate.Why{locate.OverGap, locate.FromLedger}},
		{name: "an added partition", found: map[string]string{"events/0": "25"}, want: [2]locate.Why{locate.FromLedger, locate.Added}},
		{name: "an added partition that has lost its beginning", found: map[string]string{"events/1": "5"}, onGap: start.GapContinues, want: [2]locate.Why{locate.Added, locate.FromLedger}},
		{name: "Redis was lost", commit: map[int]int64{1: 5}, onGap: start.GapContinues, want: [2]locate.Why{locate.Lost, locate.Lost}},
		{name: "Redis was lost and so was the log's beginning", commit: map[int]int64{1: 5}, want: [2]locate.Why{locate.Halts, locate.Halts}},
		{name: "torn", found: map[string]string{"events/0": "torn:25", "events/1": "7"}, want: [2]locate.Why{locate.Halts, locate.FromLedger}},
		{name: "boards without a ledger", boards: 1, want: [2]locate.Why{locate.Halts, locate.Halts}},
		{name: "another configuration", schema: "{}", found: map[string]string{"events/0": "25"}, want: [2]locate.Why{locate.Halts, locate.Halts}},
		{name: "past the log's end", found: map[string]string{"events/0": "31", "events/1": "7"}, want: [2]locate.Why{locate.Halts, locate.FromLedger}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.send(0, some("gone", 20, 5)...)
			w.send(0, some("a", 10, 5)...)
			w.send(1, some("b", 10, 5)...)
			require.NoError(t, w.cluster.DeleteRecords(topic, 0, 20))
			now := time.Now()
			w.standings.do(func() {
				w.standings.clock = func() time.Time { return now }
				for field, text := range c.found {
					w.standings.stands(field, text)
				}
				if c.schema != "" {
					w.standings.written(c.schema)
				}
				if c.boards > 0 {
					for _, s := range w.standings.shards {
						s.boards["global:weekly:2026-W47"] = nil
					}
				}
			})
			if c.commit != nil {
				w.commit(c.commit)
			}
			cfg := w.config
			cfg.OnGap, cfg.Start = c.onGap, c.start
			if c.start == (start.Where{}) {
				cfg.Start = start.Where{From: start.FromEarliest}
			}
			consumer := New(cfg)

			require.Equal(t, int64(30), w.end(topic, 0))
			logs, err := kafkaconn.AllLogs(t.Context(), consumer.kafka, topic, 2)
			require.NoError(t, err)
			require.Equal(t, []kafkaconn.Log{{Start: 20, End: 30}, {Start: 0, End: 10}}, logs)
			committed, err := kafkaconn.Committed(t.Context(), consumer.kafka, cfg.Group, topic, 0, 1)
			require.NoError(t, err)
			states := w.states()
			all, err := consumer.Outlook(t.Context(), topic, states, logs, committed)
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.Equal(t, states, w.states())
			require.Zero(t, w.standings.begins)

			for p, o := range all {
				require.Equal(t, c.want[p], o.Why, "partition %d", p)
				at, err := w.located(consumer, p)
				if o.Why == locate.Halts {
					require.Error(t, err)
					if halt, ok := errors.AsType[*health.Halt](err); ok { // a short log is confirmed only after 10 s
						require.Equal(t, o.Halt, halt)
					} else {
						require.Equal(t, health.HaltTruncated, o.Halt.Reason)
					}
					continue
				}
				require.NoError(t, err)
				require.Equal(t, at.Lowest(), o.At, "partition %d", p)
				w.standings.do(func() {
					origin := ledger.Origin{}
					if text := w.standings.origin(t, field(p)); text != "" {
						origin, err = ledger.ParseOrigin(text)
						require.NoError(t, err)
					}
					require.Equal(t, origin.Time, o.Partial, "partition %d", p)
				})
			}
		})
	}
}

// states returns the states of all shards.
func (w *world) states() []ledger.State {
	w.t.Helper()
	all, err := shards.All(w.standings.standings()).States(w.t.Context())
	require.NoError(w.t, err)
	return all
}

// commit commits offsets for the group.
func (w *world) commit(offsets map[int]int64) {
	w.t.Helper()
	commits := make(kadm.Offsets)
	for p, o := range offsets {
		commits.AddOffset(topic, int32(p), o, -1)
	}
	require.NoError(w.t, kadm.NewClient(w.client).CommitAllOffsets(w.t.Context(), w.config.Group, commits))
}
