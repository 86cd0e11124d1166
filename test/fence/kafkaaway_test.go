package fence

// Outages of Kafka, and topics that come late, grow, or aren't what they were.

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// As they are by default: what takes long must not keep a consumer from ending.
var defaults = map[string]string{"kafka.timeout": "10s", "kafka.session_timeout": "10s", "kafka.heartbeat": "1s", "redis.timeout": "5s"}

func TestAKafkaThatIsAwayOrRestartsLosesNothing(t *testing.T) {
	t.Parallel()
	kafka := testenv.PrivateKafka(t, nil)
	t.Run("away at the start", func(t *testing.T) {
		place := newPlace(t, harness.Options{Kafka: kafka, Settings: defaults})
		place.Publish(t, earned(80, 500, 100, 1)...)
		kafka.Stop()
		c := place.Start(t)
		says(t, c, 2, kafka.Addr())
		kafka.Start()
		finish(t, place)
	})
	t.Run("restarts", func(t *testing.T) {
		place := newPlace(t, harness.Options{Kafka: kafka, Partitions: 2})
		c := place.Start(t)
		place.Publish(t, earned(81, 500, 100, 2)...)
		place.AwaitCaughtUp(t, within)
		kafka.Stop()
		kafka.Start()
		place.Publish(t, earned(82, 500, 100, 2)...)
		place.AwaitCaughtUp(t, within)
		c.Terminate(t)
		place.Check(t)
		place.CheckCounts(t)
	})
}

func TestAKafkaThatIsAwayInASweepOrHangsForAWhileLosesNothing(t *testing.T) {
	t.Parallel()
	kafka := testenv.PrivateKafka(t, nil)
	t.Run("away in a sweep", func(t *testing.T) {
		place := newPlace(t, harness.Options{Kafka: kafka, Settings: map[string]string{"piece_time": "500us"}})
		place.Publish(t, earned(83, 60_000, 40_000, 1)...)
		c := place.Start(t)
		awaitSweep(t, place)
		kafka.Kill()
		lasts(t, away)
		said := t.Run("says so", func(t *testing.T) { says(t, c, 2, kafka.Addr()) })
		kafka.Start() // for those that follow, whatever came of it
		if !said {
			return
		}
		place.Publish(t, earned(84, 500, 100, 1)...)
		place.AwaitCaughtUp(t, within)
		c.Terminate(t)
		place.Check(t)
	})
	t.Run("hangs for a while", func(t *testing.T) {
		place := newPlace(t, harness.Options{Kafka: kafka, Settings: map[string]string{"kafka.timeout": "2s"}})
		c := place.Start(t)
		place.Publish(t, earned(88, 500, 100, 1)...)
		place.AwaitCaughtUp(t, within)
		kafka.Pause()
		t.Cleanup(kafka.Resume)
		lasts(t, 8*time.Second)
		kafka.Resume()
		place.Publish(t, earned(89, 500, 100, 1)...)
		place.AwaitCaughtUp(t, within)
		c.Terminate(t)
		place.Check(t)
	})
}

func TestAKafkaThatHangsDoesNotKeepAConsumerFromEnding(t *testing.T) {
	t.Parallel()
	kafka := testenv.PrivateKafka(t, nil)
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy %t", busy), func(t *testing.T) {
			place := newPlace(t, harness.Options{Kafka: kafka, Partitions: 2, Settings: defaults})
			c := place.Start(t)
			place.Publish(t, earned(85, 500, 100, 2)...)
			place.AwaitCaughtUp(t, within)
			if busy {
				place.Publish(t, earned(86, 60_000, 40_000, 2)...)
			}
			kafka.Pause()
			t.Cleanup(kafka.Resume)
			if !busy {
				lasts(t, 2*time.Second) // until calls hang
			}
			began := time.Now()
			c.Terminate(t)
			t.Logf("ended after %v", time.Since(began).Round(time.Millisecond))
			kafka.Resume()
			place.Publish(t, earned(87, 500, 100, 2)...)
			place.Start(t)
			finish(t, place)
		})
	}
}

func TestATopicThatDoesNotExistYetIsAwaited(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{NoTopic: true})
	c := place.Start(t)
	says(t, c, 2, place.Topic+" doesn't exist yet")
	place.CreateTopic(t, 2, nil)
	place.Publish(t, earned(90, 500, 100, 2)...)
	finish(t, place)
}

func TestATopicThatForgetsEqualKeysIsRefused(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{TopicConfig: map[string]string{"cleanup.policy": "compact,delete"}})
	c := place.Start(t)
	if code := c.AwaitExit(t, within); code != 1 {
		t.Errorf("it ends with code %d", code)
	}
	if text := c.Log.Text(); !strings.Contains(text, place.Topic) || !strings.Contains(text, "cleanup.policy=compact") || !strings.Contains(text, "set cleanup.policy=delete") {
		t.Errorf("it doesn't say what is wrong, and what mends it:\n%s", text)
	}
}

func TestPartitionsThatAreAddedWhileRunningAreReadFromTheirStart(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1})
	c, leaving := place.Start(t), place.Start(t)
	place.Publish(t, earned(91, 500, 100, 1)...)
	place.AwaitCaughtUp(t, within)
	leaving.AwaitReady(t, within) // it is a member
	// The other member leaves while nobody looks: the group deals the new partitions
	// before anybody has seen them.
	c.Signal(t, syscall.SIGSTOP)
	place.AddPartitions(t, 3)
	leaving.Terminate(t)
	c.Signal(t, syscall.SIGCONT)
	owns(t, c, 3)
	harness.Eventually(t, within, func() string { return publishes(t, place, one(2, "early", 3)) })
	place.Publish(t, earned(94, 900, 100, 3)...) // bad ones, too
	harness.Eventually(t, 20*time.Second, func() string { return place.Behind(t.Context()) })

	other := place.Start(t)
	other.Log.Await(t, within, "generation began")
	place.AddPartitions(t, 4)
	harness.Eventually(t, within, func() string { return publishes(t, place, one(3, "early", 3)) })
	place.Publish(t, earned(92, 1000, 100, 4)...)
	place.AwaitCaughtUp(t, within)
	owns(t, c, 2)
	owns(t, other, 2)
	for partition, origin := range place.Hash(t, "origin") {
		if origin != "0 0" {
			t.Errorf("the origin of %s is %q", partition, origin)
		}
	}
	finish(t, place)
	place.CheckCounts(t)
}

// publishes tries to publish, and says why that didn't work: a client learns late
// that a topic has grown.
func publishes(t *testing.T, place *harness.Place, r *kgo.Record) string {
	t.Helper()
	client := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	r.Topic = place.Topic
	if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		return err.Error()
	}
	place.Expect(t, r)
	return ""
}

func TestARecreatedTopicThatIsShorterHalts(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	c := place.Start(t)
	place.Publish(t, earned(93, 500, 100, 1)...)
	place.AwaitCaughtUp(t, within)
	boards := fmt.Sprint(place.Boards(t))
	if _, err := place.Admin().DeleteTopics(t.Context(), place.Topic); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, within, func() string {
		topics, err := place.Admin().ListTopics(t.Context(), place.Topic)
		if err != nil || topics.Has(place.Topic) {
			return fmt.Sprintf("the topic is still there (%v)", err)
		}
		return ""
	})
	began := time.Now() // before the consumer can see the new topic
	place.CreateTopic(t, 1, nil)
	harness.Eventually(t, within, func() string { return publishes(t, place, one(0, "new", 5)) })
	halt := c.Log.AwaitHalt(t, within, "truncated")
	t.Logf("halted after %v", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took < 9*time.Second {
		t.Errorf("it halted after %v, without waiting for what the leader says next", took)
	}
	if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, "ends at offset 1, before the ledger's position 500") {
		t.Errorf("the halt says %q", what)
	}
	if now := fmt.Sprint(place.Boards(t)); now != boards {
		t.Errorf("events of the new topic count in the boards of the old one")
	}
	c.Terminate(t)
}
