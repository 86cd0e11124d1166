package kafkaconn

// Topics: their number of partitions, and their creation.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/retry"
)

// ErrNoTopic reports that a topic does not exist.
var ErrNoTopic = errors.New("doesn't exist")

// Partitions returns the number of partitions of each topic that exists.
func Partitions(ctx context.Context, client *kafka.Client, topics ...string) (map[string]int, error) {
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("ask %v for metadata: %w", client.Addr, err)
	}
	partitions := map[string]int{}
	for _, t := range m.Topics {
		if t.Error != nil {
			if errors.Is(t.Error, kafka.UnknownTopicOrPartition) || errors.Is(t.Error, kafka.LeaderNotAvailable) {
				continue
			}
			return nil, fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
		partitions[t.Name] = len(t.Partitions)
	}
	return partitions, nil
}

// TopicPartitions returns the number of partitions of a topic. It creates nothing, and requests metadata,
// because other calls hide the cause of a failure. It waits for leaders, and returns ErrNoTopic at once if
// the topic does not exist.
func TopicPartitions(ctx context.Context, c *kafka.Client, topic string) (n int, err error) {
	var absent error
	err = RetryTransient(ctx, c, func() error {
		n, err = topicPartitions(ctx, c, topic)
		if absent = nil; errors.Is(err, ErrNoTopic) {
			absent, err = err, nil
		}
		return err
	})
	return n, cmp.Or(err, absent)
}

func topicPartitions(ctx context.Context, c *kafka.Client, topic string) (int, error) {
	response, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, fmt.Errorf("ask for topic %s: %w", topic, err)
	}
	for _, t := range response.Topics {
		if t.Name != topic {
			continue
		}
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			return 0, fmt.Errorf("topic %s: %w", topic, errors.Join(ErrNoTopic, t.Error))
		}
		if t.Error != nil {
			return 0, fmt.Errorf("topic %s: %w", topic, t.Error)
		}
		for _, partition := range t.Partitions {
			if partition.Error != nil && partition.Leader.Host == "" {
				return 0, fmt.Errorf("topic %s, partition %d: %w", topic, partition.ID, partition.Error)
			}
		}
		if len(t.Partitions) > 0 {
			return len(t.Partitions), nil
		}
	}
	return 0, fmt.Errorf("topic %s: %w", topic, errors.Join(ErrNoTopic, kafka.UnknownTopicOrPartition))
}

// CreateTopic creates a topic with the cluster's default replication, and returns once the topic can be
// written. It succeeds if another program has created the topic meanwhile.
func CreateTopic(ctx context.Context, c *kafka.Client, topic string, partitions int) error {
	response, err := c.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: -1}},
	})
	if err == nil {
		err = response.Errors[topic]
	}
	if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	// The brokers learn of a new topic one by one, and of its leaders later.
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	passes := func(error) bool { return true } // a permanent error ends with the timeout
	return retry.Policy{First: 50 * time.Millisecond, Longest: time.Second}.Do(ctx, passes, func() error {
		_, err := topicPartitions(ctx, c, topic)
		return err
	})
}
