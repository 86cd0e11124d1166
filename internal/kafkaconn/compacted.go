package kafkaconn

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// CreateCompacted makes a compacted topic, replicated as the cluster's topics are, with the
// min.insync.replicas of another as far as that is reported. It may not be known to its leaders
// yet. Someone else may have made it meanwhile: that is as good. A right that is missing is a
// *RightsError; without is what an operator has to do if it isn't granted.
func CreateCompacted(ctx context.Context, client *kafka.Client, topic string, partitions int, like, without string) error {
	t := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: -1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}}
	// What isn't reported is the cluster's default, as for the other.
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
