package run

import (
	"context"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

// reports checks the values of a group of metrics.
func reports(t *testing.T, r *reported, want ...float64) {
	t.Helper()
	var values []float64
	for _, m := range r.last() {
		var d dto.Metric
		require.NoError(t, m.Write(&d))
		values = append(values, d.GetGauge().GetValue())
	}
	require.Equal(t, want, values)
}

func TestBoardsWindowsAndMemoryAreMeasured(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	all := boards.New(ranking.Config{Client: client, Prefix: prefix, Timeout: time.Minute})
	for _, name := range []string{"eu:weekly:2026-W47", "eu:monthly:2026-11", "us:weekly:2026-W47"} {
		require.NoError(t, client.HSet(t.Context(), prefix+":{0}:windows", name, "1 2 3").Err())
	}
	m := newMeasured(client)
	_, err := countBoards(m.boards, all).Run(t.Context())
	require.NoError(t, err)
	reports(t, m.boards, 3, 2)
	_, err = measureMemory(m.memory, func(context.Context) ([]redisconn.Memory, error) {
		return []redisconn.Memory{{Server: "a:1", Used: 7, Max: 9}}, nil
	}).Run(t.Context())
	require.NoError(t, err)
	reports(t, m.memory, 7, 9)

	for most, want := range map[int64]string{3: "3 windows are listed; max_windows is 3.", 4: ""} { // no warning at 75 %
		room := windowRoom{most: most}
		require.Empty(t, room.warnings(), "before windows were counted")
		_, err := countWindows(&room, all).Run(t.Context())
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, room.warnings())
		} else {
			require.Contains(t, room.warnings()[0].What, want)
		}
	}
}
