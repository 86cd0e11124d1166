package rebuild

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// adds adds periods to the live boards, as a consumer that starts with them does.
func (p *place) adds(more ...periods.Period) {
	p.t.Helper()
	kept := []periods.Period{periods.Weekly}
	for _, name := range more {
		layout, err := codec.New(codec.Readable, name.Length(), 99_999_999)
		require.NoError(p.t, err)
		p.config.Periods[name] = ranking.Period{Layout: layout, Retention: 60 * 24 * time.Hour}
		p.settings.Retention[name] = 60 * 24 * time.Hour
		kept = append(kept, name)
	}
	p.settings.Rules = fold.BuiltIn(p.config.Calendar, (24 * time.Hour).Milliseconds(), kept...)
	all := boards.New(p.config)
	states, errs := all.States(p.t.Context())
	for _, err := range errs {
		require.NoError(p.t, err)
	}
	added, err := all.Extend(p.t.Context(), states, 5*time.Minute)
	require.NoError(p.t, err)
	require.Len(p.t, added, len(more))
	require.NoError(p.t, all.CheckSchemas(states))
	p.live = all.Shards()
	p.job.Live = p.live
}

// periodOf returns the period in a board's key.
func periodOf(key string) string {
	parts := strings.Split(key, ":")
	return parts[len(parts)-2]
}

// 20 events are counted before a period is added, and 10 after.
func TestARebuildCompletesTheRunningWindowOfAPeriodThatWasAdded(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		p.adds(periods.Monthly, periods.AllTime)
		p.publish(10, 7)
		require.NoError(t, p.consumer().To(t.Context(), replay.AllShards, map[string]ledger.Position{topic + "/0": ledger.At(30)}))
		points := func() map[string]int64 {
			all := map[string]int64{}
			for name, rows := range p.boards() {
				for _, row := range rows {
					all[periodOf(name)] += int64(row.Score)
				}
			}
			return all
		}
		read := boards.New(p.config)
		complete := func(period periods.Period, at time.Time) bool {
			w, err := p.config.Calendar.At(period, at.UnixMilli())
			require.NoError(t, err)
			b, err := read.Top(t.Context(), "global", w, 0, 100)
			require.NoError(t, err)
			if len(b.Incomplete) > 0 {
				require.Equal(t, []string{topic + "/0"}, b.Incomplete)
			}
			return len(b.Incomplete) == 0
		}
		require.Equal(t, map[string]int64{"weekly": 190 + 45, "monthly": 45, "all-time": 45}, points())
		now := time.Now()
		require.True(t, complete(periods.Weekly, now))
		require.False(t, complete(periods.Monthly, now))
		require.False(t, complete(periods.AllTime, now))
		require.True(t, complete(periods.Monthly, now.AddDate(0, 2, 0)))

		// A rebuild of some boards does not complete the period's windows on other boards.
		p.job.Choice.Boards = []string{"global"}
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.False(t, complete(periods.Monthly, now))

		p.job.Choice.Boards = nil
		r, err = p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, map[string]int64{"weekly": 190 + 45, "monthly": 190 + 45, "all-time": 190 + 45}, points())
		for _, period := range []periods.Period{periods.Weekly, periods.Monthly, periods.AllTime} {
			require.True(t, complete(period, now), "%s", period)
		}
		for _, s := range p.live {
			st, err := s.State(t.Context())
			require.NoError(t, err)
			require.Empty(t, st.Since, "nothing is left to say")
		}
	})
}

// lists makes the board global list its periods, as a consumer that starts with them does.
func (p *place) lists(of ...periods.Period) {
	p.t.Helper()
	p.config.Lists = map[string][]periods.Period{"global": of}
	p.settings.Rules.Boards = map[string]*fold.Board{"global": {Periods: 1<<len(of) - 1}}
	all := boards.New(p.config)
	states, errs := all.States(p.t.Context())
	for _, err := range errs {
		require.NoError(p.t, err)
	}
	_, err := all.Extend(p.t.Context(), states, 5*time.Minute)
	require.NoError(p.t, err)
	require.NoError(p.t, all.CheckSchemas(states))
	p.live = all.Shards()
	p.job.Live = p.live
}

func TestARebuildOfABoardCompletesThePeriodThatWasAddedToItsList(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		p.adds(periods.Monthly)
		_, err := p.job.Run(t.Context())
		require.NoError(t, err)
		counts := func(to int64) {
			p.publish(10, 7)
			require.NoError(t, p.consumer().To(t.Context(), replay.AllShards, map[string]ledger.Position{topic + "/0": ledger.At(to)}))
		}
		p.lists(periods.Weekly)
		counts(30)
		p.lists(periods.Weekly, periods.Monthly)
		counts(40)
		incomplete := func(board string, period periods.Period) []string {
			w, err := p.config.Calendar.At(period, time.Now().UnixMilli())
			require.NoError(t, err)
			b, err := boards.New(p.config).Top(t.Context(), board, w, 0, 100)
			require.NoError(t, err)
			return b.Incomplete
		}
		require.Equal(t, []string{topic + "/0"}, incomplete("global", periods.Monthly))
		require.Empty(t, incomplete("global", periods.Weekly))
		require.Empty(t, incomplete("eu", periods.Monthly))
		p.job.Choice.Boards = []string{"global"}
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Empty(t, incomplete("global", periods.Monthly))
		points := map[string]int64{}
		for name, rows := range p.boards() {
			for _, row := range rows {
				points[periodOf(name)] += int64(row.Score)
			}
		}
		require.Equal(t, points["weekly"], points["monthly"])
		for _, s := range p.live {
			st, err := s.State(t.Context())
			require.NoError(t, err)
			require.Empty(t, st.Since)
		}
	})
}
