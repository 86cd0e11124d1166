package run

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/testenv"
)

func reports(t *testing.T, c prometheus.Collector, want string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestBoardsAndWindowsAreCounted(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	all := boards.New(ranking.Config{Client: client, Prefix: prefix, Timeout: time.Minute})
	for _, name := range []string{"eu:weekly:2026-W47", "eu:monthly:2026-11", "us:weekly:2026-W47"} {
		if err := client.HSet(t.Context(), prefix+":{0}:windows", name, "1 2 3").Err(); err != nil {
			t.Fatal(err)
		}
	}
	c := newReported(windowsListed, boardsListed)
	if _, err := countBoards(c, all).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"standings_windows": 3, "standings_boards": 2} {
		if n := testutil.CollectAndCount(c, name); n != 1 {
			t.Errorf("%s: %d values", name, n)
		}
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(c)
		found, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.GetName() == name && f.GetMetric()[0].GetGauge().GetValue() != want {
				t.Errorf("%s is %v", name, f.GetMetric()[0].GetGauge().GetValue())
			}
		}
	}
	for most, want := range map[int64]bool{3: true, 4: false} { // no warning at 75 %
		room := windowRoom{most: most}
		if got := room.warnings(); got != nil {
			t.Errorf("before windows were counted: %v", got)
		}
		if _, err := countWindows(&room, all).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := room.warnings(); (len(got) == 1) != want || want && !strings.HasPrefix(got[0].What, "3 windows are listed; max_windows is 3.") {
			t.Errorf("of %d: %v", most, got)
		}
	}
}
