package deadletter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// copied are the settings that a dead-letter topic takes from its source.
var copied = []string{"retention.ms", "retention.bytes", "max.message.bytes", "min.insync.replicas"}

// Topics creates the dead-letter topics of a consumer's topics. It is safe for concurrent use.
type Topics struct {
	Client  *kafka.Client
	Log     *zap.Logger
	remakes remakes
}

// Ensure creates a topic's dead-letter topic if it is missing, with the settings and the number of partitions
// of its source, and adds missing partitions. It reports whether it created the topic; the caller must then
// call Await before the first write.
func (t *Topics) Ensure(ctx context.Context, topic string, partitions int, settings kafkaconn.TopicSettings) (made bool, err error) {
	name := event.DeadLetterTopic(topic)
	found, err := kafkaconn.Partitions(ctx, t.Client, name)
	if err != nil {
		return false, err
	}
	if n := found[name]; n >= partitions {
		return false, nil
	} else if n > 0 {
		t.Grow(ctx, topic, partitions)
		return false, nil
	}
	if err := t.create(ctx, topic, partitions, settings); err != nil {
		// Until the topic exists, bad events block their partitions. This is logged now, and again when it
		// happens.
		t.Log.Warn("couldn't create the dead-letter topic; create it, or bad events will hold up their partitions",
			zap.String("topic", name), zap.Int("partitions", partitions), zap.Error(err))
		return false, nil
	}
	return true, nil
}

// seenWithin is how long Await waits. Brokers learn of a topic within milliseconds, and the client refreshes
// its metadata once a second.
const seenWithin = 5 * time.Second

// Await waits until the leaders of all partitions of a new dead-letter topic know it, and the client knows the
// leaders. An earlier write would fail, and would be tried again as if the topic were unavailable. If Await
// gives up after seenWithin, the write reports the error.
func (t *Topics) Await(ctx context.Context, topic string, partitions int) {
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	passes := func(err error) bool { return kafkaconn.Classify(err) == ledger.Retry }
	name := event.DeadLetterTopic(topic)
	_ = retry.Policy{First: 50 * time.Millisecond, Longest: 500 * time.Millisecond}.Do(ctx, passes, func() error {
		// For an unknown partition the client asks any broker, and writes fail.
		found, err := kafkaconn.Partitions(ctx, t.Client, name)
		if err == nil && found[name] < partitions {
			err = kafka.UnknownTopicOrPartition
		}
		if err == nil {
			_, err = kafkaconn.Ends(ctx, t.Client, kafka.ReadCommitted, name, kafkaconn.UpTo(partitions)...)
		}
		return err
	})
}

func (t *Topics) create(ctx context.Context, topic string, partitions int, settings kafkaconn.TopicSettings) error {
	name := event.DeadLetterTopic(topic)
	dlq := kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: -1}
	for _, key := range copied {
		if v, ok := settings[key]; ok {
			dlq.ConfigEntries = append(dlq.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: v})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, t.Client.Timeout)
	defer cancel()
	r, err := t.Client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{dlq}})
	if err == nil {
		err = r.Errors[name]
	}
	switch {
	case err == nil:
		t.Log.Info("dead-letter topic created", zap.String("topic", name), zap.Int("partitions", partitions))
	case errors.Is(err, kafka.TopicAlreadyExists): // another replica created it first
	default:
		return err
	}
	return nil
}

// Grow adds partitions until there are as many as the source has.
func (t *Topics) Grow(ctx context.Context, topic string, partitions int) {
	ctx, cancel := context.WithTimeout(ctx, t.Client.Timeout)
	defer cancel()
	name := event.DeadLetterTopic(topic)
	r, err := t.Client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(partitions)}},
	})
	if err == nil {
		err = r.Errors[name]
	}
	if err != nil && !errors.Is(err, kafka.InvalidPartitionNumber) {
		t.Log.Warn("couldn't add partitions to the dead-letter topic; add them, or bad events will hold up the new ones",
			zap.String("topic", name), zap.Int("partitions", partitions), zap.Error(err))
	}
}

// Fewer reports whether a topic's dead-letter topic has fewer partitions than the topic. It reports false if
// the dead-letter topic does not exist or cannot be read.
func (t *Topics) Fewer(ctx context.Context, topic string, partitions int) bool {
	name := event.DeadLetterTopic(topic)
	found, err := kafkaconn.Partitions(ctx, t.Client, name)
	return err == nil && found[name] > 0 && found[name] < partitions
}

// remakeEvery is the minimum interval between two checks for a missing dead-letter topic, for all partitions
// together.
const remakeEvery = 5 * time.Second

// remakes has the time of the last check for each topic.
type remakes struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (r *remakes) due(topic string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	if last, ok := r.last[topic]; ok && time.Since(last) < remakeEvery {
		return false
	}
	r.last[topic] = time.Now()
	return true
}

// Remake creates a topic's dead-letter topic again if it is gone. After a transient error it returns nil, and
// the next call tries again.
func (t *Topics) Remake(ctx context.Context, topic string) error {
	if !t.remakes.due(topic) {
		return nil
	}
	name := event.DeadLetterTopic(topic)
	found, err := kafkaconn.Partitions(ctx, t.Client, topic, name)
	if err != nil || found[name] > 0 || found[topic] == 0 {
		return nil //nolint:nilerr // the write says what is wrong
	}
	settings, err := kafkaconn.ReadTopicSettings(ctx, t.Client, topic)
	if err != nil && kafkaconn.Classify(err) == ledger.Retry {
		return nil
	}
	t.Log.Warn("the dead-letter topic is gone: making it again", zap.String("topic", name))
	err = t.create(ctx, topic, found[topic], settings)
	switch {
	case err == nil:
		t.Await(ctx, topic, found[topic])
	case kafkaconn.Classify(err) == ledger.Halt:
		return &health.Halt{Reason: health.HaltKafka, What: fmt.Sprintf("the dead-letter topic %s is gone, and can't be made again: %v", name, err),
			Remedy: fmt.Sprintf("create it with %d partitions, or let this user create it", found[topic])}
	}
	return nil
}
