package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var kafkaFaults = []fault{
	{kind: "Kafka: restarted in order", group: ofKafka, do: func(w *world, r *rand.Rand) (func() string, error) {
		return restartKafka(w, r, w.kafka.Stop)
	}},
	{kind: "Kafka: killed, started again", group: ofKafka, do: func(w *world, r *rand.Rand) (func() string, error) {
		return restartKafka(w, r, w.kafka.Kill)
	}},
	{kind: "Kafka: hangs", group: ofKafka, do: pauseKafka},
	{kind: "Kafka: a partition added", group: ofKafka, do: addPartition},
}

func restartKafka(w *world, r *rand.Rand, end func()) (func() string, error) {
	end()
	gone, begun := refused(w.kafka.Addr()), time.Now()
	time.Sleep(between(r, 0, 3*time.Second))
	w.kafka.Start()
	if !gone {
		return nothing, nil
	}
	return saw("nobody there for %.1f s", time.Since(begun).Seconds()), nil
}

func pauseKafka(w *world, r *rand.Rand) (func() string, error) {
	w.kafka.Pause()
	time.Sleep(between(r, time.Second, 6*time.Second))
	answers := pingKafka(w.t.Context(), w.kafka.Addr(), 300*time.Millisecond)
	w.kafka.Resume()
	if answers == nil {
		return nothing, nil
	}
	return saw("it didn't answer"), nil
}

// pingKafka sends any request to a broker.
func pingKafka(ctx context.Context, address string, within time.Duration) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RetryTimeout(within), kgo.RequestRetries(0), kgo.DialTimeout(within), kgo.RequestTimeoutOverhead(within))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return client.Ping(ctx)
}

// addPartition adds a partition to the topic. Producers use it a little later. The recovery includes that
// consumers have found it.
func addPartition(w *world, _ *rand.Rand) (func() string, error) {
	w.mu.Lock()
	total := w.partitions + 1
	w.mu.Unlock()
	if total > mostPartitions {
		return nothing, nil
	}
	w.place.AddPartitions(w.t, total)
	w.mu.Lock()
	w.partitions = total
	w.mu.Unlock()
	w.producers.grew(total)
	field := fmt.Sprintf("%s/%d", w.place.Topic, total-1)
	return func() string {
		at, found := w.store.positions(w.t.Context(), w.place)[field]
		if !found {
			return ""
		}
		return fmt.Sprintf("of %d partitions now, the last one stands at %d", total, at)
	}, nil
}

var deadLetterFaults = []fault{
	{kind: "Kafka: the dead-letter topic deleted", group: ofKafka, do: deleteDeadLetterTopic},
}

// deleteDeadLetterTopic deletes the dead-letter topic, and for a while every topic that consumers create in
// its place. The dead letters are kept for the check at the end.
func deleteDeadLetterTopic(w *world, r *rand.Rand) (func() string, error) {
	had := len(w.place.DeadLetters(w.t))
	away := between(r, 0, 4*time.Second)
	deleted := w.place.DeleteDeadLetters(w.t, away)
	if deleted == 0 {
		return nothing, nil
	}
	w.producers.burst() // its bad events require a topic
	begun, after := time.Now(), time.Duration(0)
	for ; time.Since(begun) < 15*time.Second; time.Sleep(20 * time.Millisecond) {
		if w.place.HasDeadLetterTopic(w.t) {
			after = time.Since(begun)
			break
		}
	}
	return func() string {
		if !w.place.HasDeadLetterTopic(w.t) {
			return ""
		}
		text := fmt.Sprintf("%d letters gone, deleted %d times in %.1f s", had, deleted, away.Seconds())
		if after > 0 {
			text += fmt.Sprintf(", made again after %.1f s", after.Seconds())
		}
		return text
	}, nil
}
