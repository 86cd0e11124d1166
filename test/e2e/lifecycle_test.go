package e2e

// Start, shutdown, and topics that change while a consumer runs.

import (
	"syscall"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// Whatever the consumer does when it is terminated, its last line has its counts, and the exit code is 0.
func TestAConsumerThatHasJustStartedEndsInOrder(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 1})
	place.Publish(t, harness.Record(0, `{"user_id":"a","points":1}`))
	for range 5 {
		place.Start(t).Terminate(t)
	}
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)
	place.Check(t)
}

// The signals differ, because two pending signals of one kind are delivered as one.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateKafka(t, nil)
	// The shutdown timeout must not end it.
	place := harness.New(t, harness.Options{Kafka: server, Settings: map[string]string{"shutdown_timeout": "5m"}})
	place.Publish(t, harness.Record(0, `{"user_id":"u","points":1}`))
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	server.Pause() // so that leaving the group takes time
	consumer.Signal(t, syscall.SIGINT)
	// Signals that arrive together are merged into one, so the test repeats the second one until the process ends.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(within); consumer.Running() && time.Now().Before(until); <-again.C {
		_ = syscall.Kill(consumer.Pid(), syscall.SIGTERM) // it may have ended meanwhile
	}
	if code := consumer.AwaitExit(t, within); code != 128+int(syscall.SIGTERM) && code != 128+int(syscall.SIGINT) {
		t.Errorf("it ended with code %d", code)
	}
	server.Resume()

	last := place.Start(t)
	place.Publish(t, harness.Record(0, `{"user_id":"u","points":2}`))
	place.AwaitCaughtUp(t, within)
	last.Terminate(t)
	place.Check(t)
}
