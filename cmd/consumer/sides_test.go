package main

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/internal/ranking"
)

func TestASideSaysTheSameAsTextAndAsJSON(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := time.Date(2026, 11, 21, 8, 15, 30, 120e6, time.UTC)
	for _, side := range []struct {
		row        ranking.Row
		text, json string
	}{
		{ranking.Row{}, "-", `null`},
		{
			ranking.Row{There: true, Points: -1025, ReachedAt: at}, "-1,025 at 2026-11-21 09:15:30.120",
			`{"points":-1025,"reached_at":"2026-11-21T08:15:30.120Z","foreign_score":null}`,
		},
		{
			ranking.Row{There: true, Foreign: true, Score: 0.1}, "0.1, which is no score of this layout",
			`{"points":null,"reached_at":null,"foreign_score":"0.1"}`,
		},
		{
			ranking.Row{There: true, Foreign: true, Score: math.Inf(-1)}, "-Inf, which is no score of this layout",
			`{"points":null,"reached_at":null,"foreign_score":"-Inf"}`,
		},
	} {
		require.Equal(t, side.text, sides.Text(side.row, zone))
		text, err := json.Marshal(sides.Of(side.row))
		require.NoError(t, err)
		require.Equal(t, side.json, string(text))
	}
}
