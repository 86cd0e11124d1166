package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/testenv"
)

func reports(t *testing.T, c prometheus.Collector, want string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestBoardsAndWindowsAreReportedByWhoeverHasTheFirstPartition(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	store := ranking.New(ranking.Config{Client: client, Prefix: prefix, Timeout: time.Minute})
	for _, name := range []string{"eu:weekly:2026-W47", "eu:monthly:2026-11", "us:weekly:2026-W47"} {
		if err := client.HSet(t.Context(), prefix+":{0}:windows", name, "1 2 3").Err(); err != nil {
			t.Fatal(err)
		}
	}
	c := &boardCount{limit: 10}
	const limit = "# HELP standings_windows_max max_windows: an event that would open one more is a dead letter.\n# TYPE standings_windows_max gauge\nstandings_windows_max 10\n"
	reports(t, c, limit)
	if err := c.count(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"standings_windows": 3, "standings_boards": 2, "standings_windows_max": 10} {
		if n := testutil.CollectAndCount(c, name); n != 1 {
			t.Errorf("%s: %d values", name, n)
		}
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(c)
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if f.GetName() == name && f.GetMetric()[0].GetGauge().GetValue() != want {
				t.Errorf("%s is %v", name, f.GetMetric()[0].GetGauge().GetValue())
			}
		}
	}
	// Once another replica has the partition, this one reports nothing of them.
	synctest.Test(t, func(t *testing.T) {
		go c.watch(t.Context(), "points", store, func() ingest.Snapshot { return ingest.Snapshot{} }, zap.NewNop())
		time.Sleep(2 * countCheck)
		synctest.Wait()
		reports(t, c, limit)
	})
}
