package e2e

// The operations port of real processes.

import (
	"net/http"
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
