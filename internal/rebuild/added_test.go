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
