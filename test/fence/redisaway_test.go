package fence

// Outages of Redis: nothing is lost, it is said what is waited for, and all goes on
// by itself.

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

// away is how long an outage lasts that has to last.
const away = 20 * time.Second

// says waits until the consumer has said several times what it waits for: to go on,
// or to join its group, with text in the reason.
func says(t *testing.T, c *harness.Consumer, times int, text string) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		n := 0
		for _, line := range c.Log.Lines() {
			if line.Level == "warn" && strings.Contains(fmt.Sprint(line.Fields["error"]), text) {
				n++
			}
		}
		if n < times {
			return fmt.Sprintf("it has said %d times of %d that it waits, with %q; its log ends with\n%s", n, times, text, c.Log.Tail(5))
		}
		return ""
	})
}

// lasts keeps an outage up for a while: it is the time itself that is tested.
func lasts(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestARedisThatIsAwayAtTheStartIsAwaited(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	place.Publish(t, earned(60, 500, 100, 1)...)
	place.Redis.Kill()
	c := place.Start(t)
	says(t, c, 2, place.Redis.Addr())
	place.Redis.Start()
	finish(t, place)
}

func TestARedisThatIsAwayWhileRunningLosesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	events := traffic(t, place, 2)
	events.more(t, 500)
	place.Redis.Dump()
	place.Redis.Kill()
	lasts(t, away)
	says(t, c, 2, place.Redis.Addr())
	place.Redis.Start() // with the dump: it went back, too
	events.more(t, 500)
	events.stop()
	place.AwaitCaughtUp(t, within)
	if !c.Running() {
		t.Fatal("the consumer has ended")
	}
	finish(t, place)
}

func TestARedisThatHangsDoesNotKeepAConsumerFromEnding(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"idle":         {"redis.timeout": "5s"},
		"in a sweep":   {"redis.timeout": "5s", "piece_time": "500us"},
		"at the start": {"redis.timeout": "5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t, harness.Options{Settings: settings})
			if name == "at the start" {
				place.Publish(t, earned(61, 500, 100, 1)...)
				place.Redis.Pause()
				c := place.Start(t)
				says(t, c, 1, place.Redis.Addr())
				c.Terminate(t)
			} else {
				place.Publish(t, earned(61, 60_000, 40_000, 1)...)
				c := place.Start(t)
				if name == "in a sweep" {
					awaitSweep(t, place)
				} else {
					place.AwaitCaughtUp(t, within)
				}
				place.Redis.Pause()
				if name == "idle" {
					lasts(t, 2*time.Second) // until it has looked at the ledger
				}
				c.Terminate(t)
			}
			place.Redis.Resume()
			place.Publish(t, earned(59, 500, 100, 1)...)
			place.Start(t)
			finish(t, place)
		})
	}
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
			place.Publish(t, earned(62, 500, 100, 1)...)
			place.AwaitCaughtUp(t, within)
			before := place.Ledger(t)[0]
			do(t, place, outage.begin)
			place.Publish(t, earned(63, 500, 100, 1)...)
			says(t, c, 2, outage.says)
			if outage.says == "OOM" {
				saysFull(t, place, c)
			}
			if at := place.Ledger(t)[0]; at != before {
				t.Errorf("the ledger moved from %s to %s", before, at)
			}
			do(t, place, outage.end)
			c.Log.Await(t, within, "going on")
			finish(t, place)
			place.CheckCounts(t)
			if n := c.Log.Count("partition halted"); n != 0 {
				t.Errorf("an outage that passes has halted it")
			}
		})
	}
}

// saysFull requires a full Redis to be shown as one: by readiness and the metrics, and by
// status, although no consumer can write there how it is.
func saysFull(t *testing.T, place *harness.Place, c *harness.Consumer) {
	t.Helper()
	waits := c.AwaitNotReady(t, within, "waiting", "OOM")
	if waits.Cause != "redis_full" || !strings.Contains(waits.Remedy, "maxmemory (") || !strings.Contains(waits.Remedy, " of 1 bytes are used") {
		t.Errorf("%+v", waits)
	}
	harness.Eventually(t, within, func() string {
		m, err := c.Scrape(t.Context())
		used := `standings_redis_memory_used_bytes{server="` + place.Redis.Addr() + `"}`
		most := `standings_redis_memory_max_bytes{server="` + place.Redis.Addr() + `"}`
		if err == nil && m[`standings_waiting_partitions{reason="redis_full"}`] == 1 && m[used] > 100_000 && m[most] == 1 {
			return ""
		}
		return fmt.Sprintf("the metrics say %v of %v bytes: %v", m[used], m[most], err)
	})
	harness.Eventually(t, within, func() string { // once the state that was reported last is stale
		cmd := exec.CommandContext(t.Context(), harness.Binary(t), "status")
		cmd.Env = place.Environment(place.Settings)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() == 1 && strings.Contains(string(out), "is full: ") {
			return ""
		}
		return fmt.Sprintf("status doesn't say that Redis is full: %v\n%s", err, out)
	})
}

func do(t *testing.T, place *harness.Place, commands [][]any) {
	t.Helper()
	for _, command := range commands {
		must(t, place.RedisClient().Do(t.Context(), command...).Err())
	}
}

func TestARedisThatStillLoadsItsDumpIsAwaited(t *testing.T) {
	t.Parallel()
	// A millisecond a key makes loading last; events are served in between.
	place := newPlace(t, harness.Options{}, "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	c := place.Start(t)
	place.Publish(t, earned(64, 500, 100, 1)...)
	place.AwaitCaughtUp(t, within)
	pairs := make([]any, 0, 16_000)
	for i := range 8000 {
		pairs = append(pairs, fmt.Sprintf("filler:%d", i), "x")
	}
	must(t, place.RedisClient().MSet(t.Context(), pairs...).Err())
	dump := place.Redis.Dump()
	place.Publish(t, earned(65, 500, 100, 1)...)
	place.Redis.Restart(dump)
	if !strings.Contains(c.Log.Text(), "LOADING") {
		t.Errorf("the consumer hasn't met a loading Redis: %s", c.Log.Tail(5))
	}
	finish(t, place)
}

func TestScriptsThatAreFlushedAreSentAgain(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	c := place.Start(t)
	for seed := range uint64(3) {
		place.Publish(t, earned(66+seed, 500, 100, 1)...)
		place.AwaitCaughtUp(t, within)
		must(t, place.RedisClient().ScriptFlush(t.Context()).Err())
	}
	place.Publish(t, earned(70, 500, 100, 1)...)
	finish(t, place)
	for _, line := range c.Log.Lines() {
		if strings.Contains(fmt.Sprint(line.Fields["error"]), "NOSCRIPT") {
			t.Errorf("it is said that scripts were flushed, which is nothing to mend: %v", line)
		}
	}
}

func TestARedisThatEvictsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"volatile-lru", "allkeys-random"} {
		place := newPlace(t, harness.Options{}, "--maxmemory-policy", policy)
		c := place.Start(t)
		if code := c.AwaitExit(t, within); code != 1 {
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
	place.Publish(t, earned(71, 500, 100, 1)...)
	place.AwaitCaughtUp(t, within)
	do(t, place, [][]any{
		{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"},
		{"CLIENT", "KILL", "TYPE", "normal"},
	})
	halt := c.Log.AwaitHalt(t, within, "redis")
	if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, "allkeys-lru") || !strings.Contains(what, "noeviction") {
		t.Errorf("the halt says %q", what)
	}
	place.Publish(t, earned(72, 500, 100, 1)...)
	do(t, place, [][]any{{"CONFIG", "SET", "maxmemory-policy", "noeviction"}})
	c.Log.Await(t, within, "the cause of its halt is gone")
	finish(t, place)
}

func TestAWrongAddressIsNamed(t *testing.T) {
	t.Parallel()
	for key, what := range map[string]string{"redis.addresses": "waiting for Redis", "kafka.brokers": "waiting for Kafka"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t, harness.Options{})
			c := place.Start(t, map[string]string{key: "127.0.0.1:1"})
			says(t, c, 2, "127.0.0.1:1")
			c.Log.Await(t, within, what)
			c.Terminate(t)
		})
	}
}
