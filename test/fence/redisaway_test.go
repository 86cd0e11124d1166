package fence

// Outages of Redis: no event is lost, the consumer reports what it waits for, and it continues by itself.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
)

// says waits until the consumer logs once more that it waits, to continue or to join its group, with text in the
// reason.
func says(t *testing.T, c *harness.Consumer, text string) {
	t.Helper()
	before := said(c, text)
	harness.Eventually(t, harness.Within, func() string {
		if said(c, text) == before {
			return fmt.Sprintf("it doesn't say that it waits, with %q; its log ends with\n%s", text, c.Log.Tail(5))
		}
		return ""
	})
}

// said returns the number of warnings whose error contains the text.
func said(c *harness.Consumer, text string) (n int) {
	for _, line := range c.Log.Lines() {
		if line.Level == "warn" && strings.Contains(fmt.Sprint(line.Fields["error"]), text) {
			n++
		}
	}
	return n
}

func TestARedisThatIsAwayLosesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Redis.Kill()
	c := place.Start(t)
	says(t, c, place.Redis.Addr())
	place.Redis.Start()
	events := place.Traffic(t, 2)
	events.More(t, 500)
	place.AwaitBegun(t, harness.Within)
	place.Redis.Dump()
	place.Redis.Kill()
	says(t, c, place.Redis.Addr())
	place.Redis.Start() // with the dump, so it also goes back
	events.More(t, 500)
	events.Stop()
	place.AwaitCaughtUp(t, harness.Within)
	if !c.Running() {
		t.Fatal("the consumer has ended")
	}
	place.Finish(t)
}

func TestARedisThatRefusesForAWhileLosesNothing(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct {
		says       string
		begin, end [][]any
	}{
		"read-only": {
			says:  "READONLY",
			begin: [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, end: [][]any{{"REPLICAOF", "NO", "ONE"}},
		},
		"out of memory": {
			says:  "OOM",
			begin: [][]any{{"CONFIG", "SET", "maxmemory", "1"}}, end: [][]any{{"CONFIG", "SET", "maxmemory", "0"}},
		},
		"out of replicas": {
			says:  "NOREPLICAS",
			begin: [][]any{{"CONFIG", "SET", "min-replicas-to-write", "1"}}, end: [][]any{{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t, harness.Options{})
			c := place.Start(t)
			place.Publish(t, harness.Earned(62, 500, 100, 1)...)
			place.AwaitCaughtUp(t, harness.Within)
			before := place.Ledger(t)[0]
			do(t, place, outage.begin)
			place.Publish(t, harness.Earned(63, 500, 100, 1)...)
			says(t, c, outage.says)
			if outage.says == "OOM" {
				saysFull(t, place, c)
			}
			if at := place.Ledger(t)[0]; at != before {
				t.Errorf("the ledger moved from %s to %s", before, at)
			}
			do(t, place, outage.end)
			c.Log.Await(t, harness.Within, "going on")
			place.Finish(t)
			place.CheckCounts(t)
			if n := c.Log.Count("partition halted"); n != 0 {
				t.Errorf("an outage that passes has halted it")
			}
		})
	}
}

// saysFull requires that a full Redis is reported as such by readiness, by the metrics, and by status, although
// no consumer can write its state to Redis.
func saysFull(t *testing.T, place *harness.Place, c *harness.Consumer) {
	t.Helper()
	waits := c.AwaitNotReady(t, harness.Within, "waiting", "OOM")
	if waits.Cause != "redis_full" || !strings.Contains(waits.Remedy, "maxmemory (") || !strings.Contains(waits.Remedy, " of 1 bytes are used") {
		t.Errorf("%+v", waits)
	}
	harness.Eventually(t, harness.Within, func() string {
		m, err := c.Scrape(t.Context())
		used := `standings_redis_memory_used_bytes{server="` + place.Redis.Addr() + `"}`
		most := `standings_redis_memory_max_bytes{server="` + place.Redis.Addr() + `"}`
		if err == nil && m[`standings_waiting_partitions{reason="redis_full"}`] == 1 && m[used] > 100_000 && m[most] == 1 {
			return ""
		}
		return fmt.Sprintf("the metrics say %v of %v bytes: %v", m[used], m[most], err)
	})
	harness.Eventually(t, harness.Within, func() string { // once the last reported state is stale
		got := place.Run(t, nil, "status")
		if got.Code == 1 && strings.Contains(got.Stdout+got.Stderr, "is full: ") {
			return ""
		}
		return fmt.Sprintf("status doesn't say that Redis is full: %+v", got)
	})
}

func do(t *testing.T, place *harness.Place, commands [][]any) {
	t.Helper()
	for _, command := range commands {
		harness.Must(t, place.RedisClient().Do(t.Context(), command...).Err())
	}
}

func TestARedisThatEvictsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"volatile-lru", "allkeys-random"} {
		place := newPlace(t, harness.Options{}, "--maxmemory-policy", policy)
		c := place.Start(t)
		if code := c.AwaitExit(t, harness.Within); code != 1 {
			t.Errorf("with %s it ends with code %d", policy, code)
		}
		if text := c.Log.Text(); !strings.Contains(text, policy) || !strings.Contains(text, "CONFIG SET maxmemory-policy noeviction") ||
			!strings.Contains(text, place.Redis.Addr()) {
			t.Errorf("it doesn't say what is wrong, where, and what mends it:\n%s", text)
		}
	}
}

func TestARedisThatEvictsAfterAReconnectHalts(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	c := place.Start(t)
	place.Publish(t, harness.Earned(71, 500, 100, 1)...)
	place.AwaitCaughtUp(t, harness.Within)
	do(t, place, [][]any{
		{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"},
		{"CLIENT", "KILL", "TYPE", "normal"},
	})
	halt := c.Log.AwaitHalt(t, harness.Within, "redis")
	if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, "allkeys-lru") || !strings.Contains(what, "noeviction") {
		t.Errorf("the halt says %q", what)
	}
	place.Publish(t, harness.Earned(72, 500, 100, 1)...)
	do(t, place, [][]any{{"CONFIG", "SET", "maxmemory-policy", "noeviction"}})
	c.Log.Await(t, harness.Within, "the cause of its halt is gone")
	place.Finish(t)
}
