package e2e

// Final windows: the running consumer seals them, and nothing changes them until they are reopened.

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

func TestAFinalWindowIsChangedByNothingUntilItIsReopened(t *testing.T) {
	t.Parallel()
	for _, shards := range harness.OneAndFive(t) {
		t.Run(shards+" shards", func(t *testing.T) {
			t.Parallel()
			place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{"seal": "true", "lateness": "1h", "redis.shards": shards}})
			then := time.Now().UTC().AddDate(0, 0, -10)
			year, week := then.ISOWeek()
			name := fmt.Sprintf("%d-W%02d", year, week)
			window := "global:weekly:" + name
			earned := func(from, to int, at time.Time) (all []*kgo.Record) {
				for i := from; i < to; i++ {
					r := harness.Record(i%2, fmt.Sprintf(`{"user_id":"m%d","points":5}`, i))
					r.Timestamp = at
					all = append(all, r)
				}
				return all
			}
			final := func() string {
				for shard := range place.Shards() {
					listing := place.RedisClient().HGet(t.Context(), place.KeyIn(shard, "windows"), window).Val()
					if !strings.Contains(listing, `"final":`) {
						return fmt.Sprintf("shard %d lists it as %q", shard, listing)
					}
				}
				return ""
			}
			place.Publish(t, earned(0, 100, then)...)
			place.Publish(t, earned(0, 100, time.Now())...)
			place.Start(t)
			place.AwaitCaughtUp(t, within)
			place.TerminateAll(t)
			consumer := place.Start(t) // it checks as soon as it owns the first partition
			harness.Eventually(t, within, final)
			was := place.Boards(t)[window]
			if len(was) != 100 {
				t.Fatalf("%d members are in it", len(was))
			}

			place.Publish(t, earned(50, 150, then)...)
			place.AwaitCaughtUp(t, within)
			consumer.Log.Await(t, within, "events have come for windows that are final: they are late for them")
			unchanged := func(when string) {
				t.Helper()
				if is := place.Boards(t)[window]; !maps.Equal(is, was) {
					t.Fatalf("%s it has changed: %d members, and %d before", when, len(is), len(was))
				}
				if wrong := final(); wrong != "" {
					t.Fatalf("%s: %s", when, wrong)
				}
			}
			unchanged("by late events")
			for _, b := range []string{"monthly", "yearly"} { // of the events' date, if it is not the current one
				listing := "global:" + b + ":" + then.Format(map[string]string{"monthly": "2006-01", "yearly": "2006"}[b])
				if n := len(place.Boards(t)[listing]); n != 150 {
					t.Errorf("%d members are in %s, and 150 have events", n, listing)
				}
			}

			out := string(place.Command(t, "rebuild", "--from", "earliest"))
			if !strings.Contains(out, "it is final") {
				t.Errorf("rebuild doesn't say that the window is kept:\n%s", out)
			}
			place.AwaitCaughtUp(t, within)
			unchanged("by a rebuild")

			out = string(place.Command(t, "reopen", "global", "weekly", name, "--reason", "a test", "--for", "1h"))
			if !strings.Contains(out, "revision 1, is open again") {
				t.Errorf("reopen says %q", out)
			}
			place.Publish(t, earned(140, 160, then)...)
			consumer.Log.Await(t, within, "windows that were final take events again")
			place.AwaitCaughtUp(t, within)
			place.Command(t, "rebuild", "--from", "earliest")
			place.AwaitCaughtUp(t, within)
			consumer.Terminate(t)
			place.Check(t) // including the events that came while it was final
		})
	}
}
