package e2e

// The operations port of real processes.

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestReadinessFollowsKafkaRedisAndTheGroup(t *testing.T) {
	t.Parallel()
	redis := testenv.PrivateRedis(t)
	place := harness.New(t, harness.Options{Redis: redis, NoTopic: true})
	consumer := place.Start(t)
	consumer.AwaitNotReady(t, within, "joining", "topic "+place.Topic+" doesn't exist yet")
	place.CreateTopic(t, 1, nil)
	consumer.AwaitReady(t, within)
	spare := place.Start(t) // one of the two replicas has no partition
	spare.AwaitReady(t, within)
	place.Publish(t, some("u", 0, 10)...)
	place.AwaitCaughtUp(t, within)

	redis.Pause()
	for _, c := range []*harness.Consumer{consumer, spare} {
		if gone := c.AwaitNotReady(t, within, "redis_unreachable", redis.Addr()); gone.Remedy == "" {
			t.Errorf("it doesn't say what to do: %+v", gone)
		}
		if healthy, err := c.Healthy(t.Context()); !healthy {
			t.Errorf("a Redis that is away is no reason for a restart: %v", err)
		}
	}
	harness.Eventually(t, within, func() string { // the replica that owns the partition reports it, too
		for _, c := range place.Consumers() {
			if _, reasons, err := c.Ready(t.Context()); err == nil {
				for _, r := range reasons {
					if r.Reason == "waiting" && r.Partition == place.Topic+"/0" {
						return ""
					}
				}
			}
		}
		return "no replica says that the partition waits"
	})
	redis.Resume()
	consumer.AwaitReady(t, within)
	spare.AwaitReady(t, within)
	place.TerminateAll(t)
	place.Check(t)
}

func TestAHaltedPartitionIsAReasonAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2})
	place.Publish(t, append(some("u", 0, 5), some("u", 1, 5)...)...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.AwaitReady(t, within)
	was := place.Ledger(t)[0]
	if err := place.RedisClient().HSet(t.Context(), place.Key("ledger"), place.Topic+"/0", "torn:"+was).Err(); err != nil {
		t.Fatal(err)
	}
	torn := consumer.AwaitNotReady(t, within, "torn", "")
	if torn.Partition != place.Topic+"/0" || torn.What == "" || torn.Remedy == "" {
		t.Errorf("it says %+v", torn)
	}
	if healthy, err := consumer.Healthy(t.Context()); !healthy {
		t.Errorf("a halted partition is no reason for a restart: %v", err)
	}
	behind := append(some("v", 0, 5), some("v", 1, 5)...)
	place.Publish(t, behind...)
	harness.Eventually(t, within, func() string {
		m, err := consumer.Scrape(t.Context())
		switch {
		case err != nil:
			return err.Error()
		case m[`standings_halted_partitions{reason="torn"}`] != 1 || m["standings_ready"] != 0:
			return "the metrics don't tell of the halt"
		case m["standings_events_total{result=\"applied\"}"] != 15:
			return "the other partition doesn't go on"
		case m[`standings_lag_records{partition="0",topic="`+place.Topic+`"}`] != float64(len(behind)/2):
			return "the halted partition isn't behind by what was published to it"
		case m[`standings_lag_seconds{partition="0",topic="`+place.Topic+`"}`] == 0:
			return "the halted partition's records grow no older"
		case m[`standings_lag_records{partition="1",topic="`+place.Topic+`"}`] != 0:
			return "the other partition is behind"
		}
		return ""
	})
	if err := place.RedisClient().HSet(t.Context(), place.Key("ledger"), place.Topic+"/0", was).Err(); err != nil {
		t.Fatal(err)
	}
	consumer.AwaitReady(t, within)
	place.TerminateAll(t)
	place.Check(t)
}

func TestPromtoolFindsNothingWrongWithTheMetrics(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		testenv.NotRun(t, "there is no promtool on the PATH (Debian has it in the package prometheus)")
	}
	place := harness.New(t, harness.Options{Partitions: 2})
	place.Publish(t, append(some("u", 0, 50), harness.Record(1, "soup"))...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.AwaitReady(t, within)
	text := ""
	harness.Eventually(t, within, func() string { // the metric follows the ledger with a short delay
		if text, err = consumer.Exposition(t.Context()); err != nil {
			return err.Error()
		}
		for _, series := range []string{
			`standings_events_total{result="applied"} 50`,
			`standings_events_dead_lettered_total{reason="malformed"} 1`,
			`standings_dead_letters_written_total 2`, // some() contains a bad event, too
			`standings_lag_records{partition="0",topic="` + place.Topic + `"} 0`,
			`standings_lag_seconds{partition="1",topic="` + place.Topic + `"} 0`,
			`standings_assigned_partitions 2`,
			`standings_ready 1`,
		} {
			if !strings.Contains(text, "\n"+series+"\n") {
				return "/metrics hasn't " + series
			}
		}
		return ""
	})
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	consumer.Terminate(t)
}

func TestHowMuchOfTheRangeIsUsedIsToldByOneReplica(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2})
	place.Publish(t, harness.Record(0, `{"user_id":"rich","points":49999999}`), harness.Record(1, `{"user_id":"poor","points":-75000000,"board":"eu"}`))
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.Start(t).AwaitReady(t, within)
	harness.Eventually(t, within, func() string {
		tell := 0
		for _, c := range place.Consumers() {
			m, err := c.Scrape(t.Context())
			if err != nil {
				return err.Error()
			}
			for _, period := range []string{"weekly", "monthly", "yearly"} {
				if used, ok := m[`standings_points_largest_ratio{period="`+period+`"}`]; ok {
					tell++
					if used < 0.75 || used > 0.7501 {
						return fmt.Sprintf("%s is used to %v, and -75,000,000 of 99,999,999 is the furthest", period, used)
					}
				}
			}
		}
		if tell != 3 {
			return fmt.Sprintf("%d replicas and periods tell, of three periods one replica each should", tell)
		}
		return ""
	})
	place.TerminateAll(t)
	place.Check(t)
}

// A scraper that hangs does not delay the process; the port closes when the process ends.
func TestThePortIsOpenUntilTheEndAndNotAfterIt(t *testing.T) {
	t.Parallel()
	// Terminate does not wait that long, so a shutdown that nothing blocks must not use the timeout.
	place := harness.New(t, harness.Options{Settings: map[string]string{"shutdown_timeout": "5m"}})
	consumer := place.Start(t)
	consumer.AwaitReady(t, within)
	consumer.Terminate(t)
	if _, _, err := consumer.Ready(t.Context()); err == nil {
		t.Error("somebody still answers")
	}
	http.DefaultClient.CloseIdleConnections()
}
