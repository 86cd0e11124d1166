package fence

// Outages of Kafka, and a topic that has changed.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestAKafkaThatIsAwayInASweepOrHangsForAWhileLosesNothing(t *testing.T) {
	t.Parallel()
	kafka := testenv.PrivateKafka(t, nil)
	place := newPlace(t, harness.Options{Kafka: kafka, Settings: map[string]string{"kafka.timeout": "2s"}})
	place.Publish(t, harness.Earned(83, 60_000, 40_000, 1)...)
	kafka.Stop()
	c := place.Start(t)
	says(t, c, kafka.Addr())
	kafka.Start()
	awaitSweep(t, place)
	kafka.Kill()
	says(t, c, kafka.Addr())
	kafka.Start()
	place.Publish(t, harness.Earned(84, 500, 100, 1)...)
	place.AwaitCaughtUp(t, harness.Within)

	kafka.Pause()
	says(t, c, kafka.Addr())
	kafka.Resume()
	place.Publish(t, harness.Earned(89, 500, 100, 1)...)
	place.Finish(t)
}

// publishes tries to publish a record, and returns the reason if it fails: a client learns with a delay that a
// topic has grown.
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

func TestARecreatedTopicHalts(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	c := place.Start(t)
	place.Publish(t, harness.Earned(93, 500, 100, 1)...)
	place.AwaitCaughtUp(t, harness.Within)
	boards := fmt.Sprint(place.Boards(t))
	if _, err := place.Admin().DeleteTopics(t.Context(), place.Topic); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, harness.Within, func() string {
		topics, err := place.Admin().ListTopics(t.Context(), place.Topic)
		if err != nil || topics.Has(place.Topic) {
			return fmt.Sprintf("the topic is still there (%v)", err)
		}
		return ""
	})
	place.CreateTopic(t, 1, nil)
	harness.Eventually(t, harness.Within, func() string { return publishes(t, place, one(0, "new", 5)) })
	halt := c.Log.AwaitHalt(t, harness.Within, "recreated")
	if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, "was deleted and created again") {
		t.Errorf("the halt says %q", what)
	}
	var longer []*kgo.Record // longer than the first topic
	for _, r := range harness.Earned(94, 600, 100, 1) {
		r.Topic = place.Topic
		longer = append(longer, r)
	}
	client := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := client.ProduceSync(t.Context(), longer...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c.Terminate(t)
	c = place.Start(t)
	c.Log.AwaitHalt(t, harness.Within, "recreated")
	if now := fmt.Sprint(place.Boards(t)); now != boards {
		t.Errorf("events of the new topic count in the boards of the old one")
	}
	c.Terminate(t)
}

// another returns events for another sweep, if the test missed the previous one.
func another() []*kgo.Record { return harness.Earned(5, 60_000, 40_000, 1) }

// awaitSweep waits until a consumer is in the middle of a sweep of the first partition.
func awaitSweep(t *testing.T, place *harness.Place) {
	t.Helper()
	place.CatchSweep(t, harness.Within, harness.Sweep{More: another})
}
