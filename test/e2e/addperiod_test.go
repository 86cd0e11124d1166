package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// Daily boards are added to one replica after the other. Days that started before are incomplete until a rebuild.
func TestDailyBoardsAreAddedToRunningConsumersAndARebuildCompletesThem(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{"lateness": "10d", "periods.daily.enabled": "true"}})
	g := generator(t, sample.Options{Seed: 3, Members: 300, Boards: []string{"global", "eu"}, BoardsPerEvent: 2, Spread: 5 * 24 * time.Hour, Corrections: 0.05})
	place.Publish(t, records(g, 4000, 2)...)
	first := place.Start(t, map[string]string{"periods.daily.enabled": "false"})
	place.AwaitCaughtUp(t, within)

	if code, said := says(t, place, nil, "check"); code != 0 || !strings.Contains(strings.Join(strings.Fields(said), " "), "the windows of daily that start before about") {
		t.Errorf("check, code %d: %s", code, said)
	}
	second := place.Start(t)
	second.Log.Await(t, within, "a period was added; its windows that start before since are incomplete")
	place.Publish(t, records(g, 2000, 2)...)
	first.AwaitNotReady(t, within, "schema", "also have the periods daily, which this configuration lacks")
	first.Terminate(t)
	place.AwaitCaughtUp(t, within)
	state := func(period, want string) {
		t.Helper()
		harness.Eventually(t, within, func() string {
			if code, said := says(t, place, nil, "top", "global", period, "--json"); code != 0 || !strings.Contains(said, `"state": "`+want+`"`) {
				return said
			}
			return ""
		})
	}
	state("daily", "incomplete")
	state("weekly", "whole")

	place.Command(t, "rebuild")
	state("daily", "whole")
	second.Terminate(t)
	place.CheckBoards(t)
}
