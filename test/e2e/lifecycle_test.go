package e2e

// Start, shutdown, and topics that change while a consumer runs.

import (
	"fmt"
	"strings"

	"syscall"
	"testing"
	"time"

	"github.com/standings/standings/internal/sample"
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

func TestSIGTERMUnderLoadEndsInOrderWithOffsetsCommittedWhereTheLedgerStands(t *testing.T) {
	testenv.Slow(t)
	// This runs alone, since a consumer that finds Redis slow sends small pieces, and next to other tests it
	// may be a minute behind at the end.
	for _, shards := range harness.OneAndFive(t) {
		t.Run(shards+" shards", func(t *testing.T) { endsInOrder(t, shards) })
	}
}

func endsInOrder(t *testing.T, shards string) {
	t.Helper()
	const partitions, events, enough = 2, 30_000, 4 // number of shutdowns in the middle of the work
	place := harness.New(t, harness.Options{Partitions: partitions, Settings: map[string]string{"lateness": "40d", "fold_memory": "44MiB", "redis.shards": shards}})
	g := generator(t, sample.Options{
		Seed: 3, Members: 100_000, Boards: []string{"a", "b", "c", "d"}, BoardsPerEvent: 4, Spread: 30 * 24 * time.Hour, Bad: 0.01,
	})
	place.Publish(t, records(g, events, partitions)...)
	cut := 0
	for range 2 * enough {
		if place.Behind(t.Context()) == "" { // the consumer was faster than the test
			if cut > 0 {
				break
			}
			place.Publish(t, records(g, events, partitions)...)
		}
		before := fmt.Sprint(place.Ledger(t))
		consumer := place.Start(t)
		place.AwaitBegun(t, within) // in every shard: from now on each committed offset can be compared with a ledger
		harness.Eventually(t, within, func() string {
			if !consumer.Running() {
				t.Fatalf("the consumer has ended: %s", consumer.Log.Tail(5))
			}
			if fmt.Sprint(place.Ledger(t)) == before {
				return "nothing moves"
			}
			return ""
		})
		consumer.Terminate(t)
		place.CheckCommitted(t)
		if place.Behind(t.Context()) != "" {
			if cut++; cut == enough {
				break
			}
		}
	}
	if cut == 0 {
		t.Error("the consumer was through before it was told to end: the test shows nothing")
	}
	place.Start(t).AwaitReady(t, within)
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)
	place.Check(t)
	place.CheckCounts(t) // each event is in one process's counts, although several processes read it
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

func TestPartitionsAddedWhileRunningCountFromTheirFirstEvent(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2})
	place.Publish(t, some("old", 0, 10)...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.AddPartitions(t, 4)
	place.Publish(t, append(some("new", 3, 10), some("old", 1, 10)...)...)
	place.AwaitCaughtUp(t, within)
	place.Publish(t, append(some("new", 2, 10), some("old", 0, 10)...)...)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
	for field, origin := range place.Hash(t, "origin") {
		if !strings.HasPrefix(origin, "0 0 ") {
			t.Errorf("the origin of %s is %q", field, origin)
		}
	}
}
