package kafkaconn

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// CreateCompacted creates a compacted topic with the cluster's default replication, and with the
// min.insync.replicas of the topic like, if that is reported. The topic's leaders may not know it yet when
// CreateCompacted returns. It succeeds if another program has created the topic meanwhile. If the right is
// missing it returns a *RightsError; without describes the operator's alternative to granting the right.
func CreateCompacted(ctx context.Context, client *kafka.Client, topic string, partitions int, like, without string) error {
	t := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: -1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}}
	// If it is not reported, both topics have the cluster's default.
	if settings, err := ReadTopicSettings(ctx, client, like); err == nil && settings["min.insync.replicas"] != "" {
		t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: settings["min.insync.replicas"]})
	}
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	r, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{t}})
	if err == nil {
		err = r.Errors[topic]
	}
	switch {
	case errors.Is(err, kafka.TopicAuthorizationFailed), errors.Is(err, kafka.ClusterAuthorizationFailed):
		return &RightsError{Missing: []Right{{Operation: kafka.ACLOperationTypeCreate, Topic: topic, For: "as it doesn't exist: grant it, or " + without}}}
	case err == nil, errors.Is(err, kafka.TopicAlreadyExists):
		return nil
	}
	return fmt.Errorf("create topic %s (or %s): %w", topic, without, err)
}
