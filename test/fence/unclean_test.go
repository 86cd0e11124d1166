package fence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

const kept, lost, instead = 50, 100, 150

// of returns events of one point each, for members whose ids begin with name.
func of(name string, n int) (all []*kgo.Record) {
	for i := range n {
		all = append(all, one(0, fmt.Sprint(name, i%20), 1))
	}
	return all
}

// For each topic, the events happen in this order:
//
//	broker 2                   broker 3                    consumer
//	has 50 events              has 50 events               counts 50
//	                           stops
//	gets 100 more                                          counts 150
//	is killed
//	                           starts, is elected
//	                           gets 150 others             position 150, of 200
//
// The offsets from 50 to 149 have other events now. One consumer runs all the time; the other one starts after all
// of this.
func TestAnUncleanElectionOfARealClusterHaltsWithEpochAndOffset(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	cluster := testenv.PrivateKafkaCluster(t, 3)
	redis := testenv.PrivateRedis(t)
	var places []*harness.Place
	for range 2 {
		place := newPlace(t, harness.Options{Kafka: cluster.Brokers[0], Redis: redis, NoTopic: true})
		cluster.Topic(t, place.Topic, map[string]string{"retention.ms": "-1", "unclean.leader.election.enable": "true", "min.insync.replicas": "1"}, 2, 3)
		cluster.Topic(t, place.DeadLetterTopic(), nil, 1)
		place.Publish(t, of("kept", kept)...)
		places = append(places, place)
	}
	running, stopped := places[0], places[1]
	runs, ends := running.Start(t), stopped.Start(t)
	cluster.Brokers[2].Stop()
	for _, place := range places {
		cluster.AwaitLeader(t, place.Topic, 2)
		// A separate client, since its producer's sequence is lost with the events.
		c := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for _, r := range of("lost", lost) {
			r.Topic = place.Topic
			harness.Must(t, c.ProduceSync(t.Context(), r).FirstErr())
		}
		place.AwaitCaughtUp(t, harness.Within)
		place.AwaitCommitted(t, harness.Within)
	}
	ends.Terminate(t)
	cluster.Brokers[1].Kill()
	cluster.Brokers[2].Start()
	for _, place := range places {
		cluster.AwaitLeader(t, place.Topic, 3)
		place.Publish(t, of("instead", instead)...)
	}
	for i, c := range []*harness.Consumer{runs, stopped.Start(t)} {
		place := places[i]
		halt := c.Log.AwaitHalt(t, harness.Within, "truncated")
		what, remedy := fmt.Sprint(halt.Fields["what"]), fmt.Sprint(halt.Fields["remedy"])
		if want := fmt.Sprintf("has lost the events from offset %d to %d, which count in the boards: the epoch ", kept, kept+lost-1); !strings.Contains(what, want) {
			t.Errorf("consumer %d halts with %q, which lacks %q", i, what, want)
		}
		if want := fmt.Sprintf(" of its leader ends at %d", kept); !strings.Contains(what, want) || !strings.Contains(remedy, "consumer rebuild") {
			t.Errorf("consumer %d halts with %q, which lacks %q: %s", i, what, want, remedy)
		}
		if r := c.AwaitNotReady(t, harness.Within, "truncated", ""); !strings.Contains(r.What, "the epoch ") || !strings.Contains(r.Remedy, "consumer rebuild") {
			t.Errorf("consumer %d is not ready for %+v", i, r)
		}
		awaitLine(t, place, 0, "halted", "truncated")
		if status := place.Run(t, nil, "status"); status.Code == 0 || !strings.Contains(status.Stdout, "truncated") || !strings.Contains(status.Stdout, "the epoch ") {
			t.Errorf("consumer status ends with %d: %s", status.Code, status.Stdout)
		}
		place.Command(t, "rebuild")
		c.Log.Await(t, harness.Within, "the cause of its halt is gone")
		place.Finish(t)
	}
}
