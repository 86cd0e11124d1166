package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// reshards changes the number of shards, and returns the command's report.
func reshards(t *testing.T, place *harness.Place, to int) (said struct {
	Switched         bool
	From, To         int
	Standings        int64
	HeldMS           int64 `json:"held_ms"`
	Windows, Removed int
	Checksum         string
}) {
	t.Helper()
	if err := json.Unmarshal(place.Command(t, "reshard", "--to", fmt.Sprint(to), "--json"), &said); err != nil {
		t.Fatal(err)
	}
	return said
}

// Replicas with the old and with the new configuration run all the time. A reshard is killed while it copies.
// Meanwhile members earn points, on boards with several rules. Two of the members are banned.
func TestTheNumberOfShardsIsChangedUnderTraffic(t *testing.T) {
	testenv.Slow(t)
	// This runs alone, since its consumers and its traffic would slow down tests with deadlines.
	began := time.Now()
	settings := harness.Ruled(began.Add(-time.Hour), began.Add(time.Hour)) // boards with several rules, and a season
	settings["redis.shards"] = "1"
	place := banning(t, settings)
	ctx, stop := context.WithCancel(t.Context())
	var traffic sync.WaitGroup
	traffic.Go(func() {
		luck := rand.New(rand.NewPCG(1, 2))
		for n := 0; ctx.Err() == nil; n++ {
			for i := range 15 {
				event := map[string]any{"event_id": fmt.Sprintf("%d-%d", n, i), "occurred_at": time.Now().Add(-time.Duration(luck.IntN(7200)) * time.Second).UTC().Format(time.RFC3339Nano)}
				place.Stream(context.WithoutCancel(ctx), t, harness.RuledEvent(luck, i%3, fmt.Sprintf("u%d", (i*13+n*7)%500), event))
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	ended := func() {
		stop()
		traffic.Wait()
		place.Await()
	}
	defer ended()
	old := place.Start(t)
	place.AwaitBegun(t, within)
	harness.Eventually(t, within, func() string { // the first reshard must have standings to copy, too
		if len(place.Boards(t)) == 0 {
			return "nothing is counted yet"
		}
		return ""
	})

	switches := 0
	for _, to := range []int{3, 2, 1, 4} {
		place.Settings["redis.shards"] = fmt.Sprint(to) // the configuration precedes Redis
		if to != 3 {
			// Redis has the number of shards, and this replica uses that number.
			place.Start(t).Log.Await(t, within, "redis.shards is")
		}
		if to == 2 {
			orders(t, place, "ban", "u7", "--reason", "aimbot") // hidden standings are copied, too
			orders(t, place, "ban", "u9", "--board", "arena", "--reason", "boosted")
			killed(t, place, 3, to)
		}
		said := reshards(t, place, to)
		if !said.Switched || said.To != to || said.Standings == 0 || said.Windows == 0 || said.Removed == 0 || len(said.Checksum) != 16 {
			t.Errorf("it says %+v", said)
		}
		t.Logf("%d to %d shards: %d standings, held for %d ms", said.From, to, said.Standings, said.HeldMS)
		switches++
		harness.Eventually(t, within, func() string {
			if n := old.Log.Count("the boards have another number of shards; going on with that"); n != switches {
				return fmt.Sprintf("it has taken up %d numbers of shards, of %d", n, switches)
			}
			return ""
		})
		if out := string(place.Command(t, "top", "global", "weekly")); !strings.Contains(out, "u") {
			t.Errorf("after the switch:\n%s", out)
		}
		harness.Eventually(t, within, func() string { // counting continues
			for partition, text := range place.Ledger(t) {
				if text == "" {
					return fmt.Sprintf("partition %d isn't counted", partition)
				}
			}
			return ""
		})
	}
	ended()
	place.AwaitCaughtUp(t, within)
	// Every command uses the number of shards in Redis.
	outdated := map[string]string{"redis.shards": "2"}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"redis.shards is 2 in the configuration but 4 in Redis", []string{"check"}},
		{"replaced", []string{"rebuild"}},
		{`"shard": 3`, []string{"top", "global", "weekly", "--json", "--shards"}},
		{"nothing to do: the prefix", []string{"reshard", "--to", "4"}},
	} {
		if _, out := place.Says(t, outdated, c.args...); !strings.Contains(out, c.says) {
			t.Errorf("%v doesn't say %q:\n%s", c.args, c.says, out)
		}
	}
	isGone(t, place, "u7")
	checkBanned(t, place)
	orders(t, place, "unban", "u7")
	orders(t, place, "unban", "u9", "--board", "arena")
	place.TerminateAll(t)
	place.Banned = nil
	place.Check(t)
}

// killed starts a reshard that another job's hold blocks, and kills it. Nothing on the old shards may have
// changed.
func killed(t *testing.T, place *harness.Place, from, to int) {
	t.Helper()
	place.Settings["redis.shards"] = fmt.Sprint(from)
	hold := place.KeyIn(1, "hold")
	place.Settings["redis.shards"] = fmt.Sprint(to)
	if err := place.RedisClient().Set(t.Context(), hold, "another's", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	reshard := place.Begin(t, nil, "reshard", "--to", fmt.Sprint(to))
	harness.Eventually(t, within, func() string {
		if !strings.Contains(reshard.Log.Text(), "waiting for consumers") || place.RedisClient().Exists(t.Context(), place.KeyIn(1, "~copy")).Val() == 0 {
			return "it hasn't begun: " + reshard.Log.Text()
		}
		return ""
	})
	reshard.Kill()
	if n := place.RedisClient().Del(t.Context(), hold).Val(); n != 1 {
		t.Error("another's hold was taken away")
	}
	// Its lock expires within half a minute; until then another reshard is refused.
	harness.Eventually(t, within, func() string {
		code, out := place.Says(t, nil, "reshard", "--to", fmt.Sprint(to), "--dry-run")
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
		client := place.RedisClient()
		if n := client.Exists(t.Context(), place.Prefix+":{0}:~reshard").Val(); n > 0 {
			return "its lock is still there"
		}
		return ""
	})
}
