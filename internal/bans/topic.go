package bans

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
)

// TopicError reports a topic that is unsuitable for bans, and the remedy.
type TopicError struct{ Topic, What, Remedy string }

func (e *TopicError) Error() string {
	return fmt.Sprintf("kafka.bans_topic %s %s: %s", e.Topic, e.What, e.Remedy)
}

// Need returns the right required to read the bans.
func Need(topic string) kafkaconn.Right {
	return kafkaconn.Right{Operation: kafka.ACLOperationTypeRead, Topic: topic, For: "to know who is banned"}
}

// NeedToBan returns the right required in addition to ban members.
func NeedToBan(topic string) kafkaconn.Right {
	return kafkaconn.Right{Operation: kafka.ACLOperationTypeWrite, Topic: topic, For: "to ban"}
}

// Ensure creates a missing topic: compacted, with one partition, and with the replication factor of the cluster's
// topics. It refuses a topic that could lose bans or that has several partitions, and so no total order. If this
// cannot be checked, the error is ErrUnchecked, and the topic can be used.
func Ensure(ctx context.Context, client *kafka.Client, topic, source string) (made bool, err error) {
	found, err := kafkaconn.Partitions(ctx, client, topic)
	if err != nil {
		return false, err
	}
	if n := found[topic]; n == 0 {
		if err := create(ctx, client, topic, source); err != nil {
			return false, err
		}
		made = true
	} else if err := CheckTopic(topic, n, nil); err != nil {
		return false, err
	}
	return made, Compacted(ctx, client, topic)
}

// ErrUnchecked reports that a right to read the topic's configuration is missing, so it is unknown whether the
// topic is compacted.
var ErrUnchecked = errors.New("no right to read the bans topic's configuration: it isn't checked that it is compacted")

// Compacted returns an error if a topic could lose bans. The error is ErrUnchecked if a right to read the
// configuration is missing.
func Compacted(ctx context.Context, client *kafka.Client, topic string) error {
	var settings kafkaconn.TopicSettings
	err := kafkaconn.RetryTransient(ctx, client, func() (err error) {
		settings, err = kafkaconn.ReadTopicSettings(ctx, client, topic)
		return err
	})
	if errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed) {
		return ErrUnchecked
	}
	if err != nil {
		return err
	}
	return CheckTopic(topic, 1, settings)
}

// CheckTopic returns a *TopicError if a topic with this number of partitions and these known settings could lose
// bans or has several partitions.
func CheckTopic(topic string, partitions int, settings kafkaconn.TopicSettings) error {
	if partitions > 1 {
		return &TopicError{topic, fmt.Sprintf("has %d partitions", partitions), "it has to have one, so that bans have an order; name another topic, or delete this one and it is created"}
	}
	if policy, ok := settings["cleanup.policy"]; ok && strings.TrimSpace(policy) != "compact" {
		return &TopicError{topic, "has cleanup.policy=" + policy + ", which deletes bans by their age",
			"run kafka-configs --alter --topic " + topic + " --add-config cleanup.policy=compact, or name another topic"}
	}
	return nil
}

func create(ctx context.Context, client *kafka.Client, topic, source string) error {
	if err := kafkaconn.CreateCompacted(ctx, client, topic, 1, source, "create the topic with one partition and cleanup.policy=compact"); err != nil {
		return err
	}
	_, err := waitFor(ctx, client, topic)
	return err
}

// waitFor waits until the topic's leader knows it.
func waitFor(ctx context.Context, client *kafka.Client, topic string) (logs map[int]kafkaconn.Log, err error) {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	var last error
	err = tries.Do(ctx, passes, func() error {
		var try error
		if logs, try = kafkaconn.Logs(ctx, client, topic, 0); try != nil && ctx.Err() == nil {
			last = try
		}
		return try
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		err = fmt.Errorf("wait for the leader of %s: %w", topic, last) // it is more specific
	}
	return logs, err
}
