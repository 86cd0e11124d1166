package kafkaconn

// Compacted topics, in which this program keeps records: their creation, and whether they could lose records.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Compacted describes a compacted topic. It has one partition, so that its records have an order.
type Compacted struct {
	Topic   string
	Loses   string // what another cleanup policy does: "deletes bans by their age"
	Several string // the remedy if the topic has several partitions
	Or      string // an alternative to compacting the topic, such as ", or name another topic"
}

// TopicError reports a topic with unsuitable settings, and the remedy.
type TopicError struct{ Topic, What, Remedy string }

func (e *TopicError) Error() string {
	return fmt.Sprintf("topic %s %s: %s", e.Topic, e.What, e.Remedy)
}

// ErrUnchecked reports that a topic's cleanup policy could not be read because a right is missing.
var ErrUnchecked = errors.New("no right to read the topic's configuration: it isn't checked that it is compacted")

// Check returns a *TopicError if a topic with this number of partitions and these known settings could lose
// records or has several partitions.
func (c Compacted) Check(partitions int, settings TopicSettings) error {
	if partitions > 1 {
		return &TopicError{c.Topic, fmt.Sprintf("has %d partitions", partitions), c.Several}
	}
	if policy, ok := settings["cleanup.policy"]; ok && strings.TrimSpace(policy) != "compact" {
		return &TopicError{c.Topic, "has cleanup.policy=" + policy + ", which " + c.Loses,
			"run kafka-configs --alter --topic " + c.Topic + " --add-config cleanup.policy=compact" + c.Or}
	}
	return nil
}

// Ensure creates the topic if it is missing, like another topic, and checks it. If a missing right prevents the
// check, the error is ErrUnchecked, and the topic can be used.
func (c Compacted) Ensure(ctx context.Context, client *kafka.Client, like string) (made bool, err error) {
	if made, err = EnsureCompacted(ctx, client, c.Topic, 1, like, "create the topic with one partition and cleanup.policy=compact"); err != nil {
		return made, err
	}
	n, err := TopicPartitions(ctx, client, c.Topic)
	if err != nil {
		return made, err
	}
	var settings TopicSettings
	err = RetryTransient(ctx, client, func() (err error) {
		settings, err = ReadTopicSettings(ctx, client, c.Topic)
		return err
	})
	if errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed) {
		settings, err = nil, ErrUnchecked
	}
	if unfit := c.Check(n, settings); unfit != nil {
		return made, unfit
	}
	return made, err
}

// EnsureCompacted creates a compacted topic if it is missing, with the cluster's default replication, and with
// the min.insync.replicas of the topic like, if that is reported. It returns once the topic's leaders know it,
// and succeeds if another program has created the topic meanwhile. If the right is missing it returns a
// *RightsError; without describes the operator's alternative to granting the right.
func EnsureCompacted(ctx context.Context, client *kafka.Client, topic string, partitions int, like, without string) (made bool, err error) {
	found, err := Partitions(ctx, client, topic)
	if err != nil || found[topic] > 0 {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	if err := createCompacted(ctx, client, topic, partitions, like, without); err != nil {
		return false, err
	}
	var last error
	passes := func(err error) bool { return errors.Is(err, ErrNoTopic) || Classify(err) == ledger.Retry }
	err = retry.Policy{First: 50 * time.Millisecond, Longest: time.Second}.Do(ctx, passes, func() error {
		n, err := TopicPartitions(ctx, client, topic)
		if err == nil {
			_, err = Logs(ctx, client, topic, UpTo(n)...)
		}
		if ctx.Err() == nil {
			last = err
		}
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		err = fmt.Errorf("wait for the leaders of %s: %w", topic, last) // it is more specific
	}
	return true, err
}

func createCompacted(ctx context.Context, client *kafka.Client, topic string, partitions int, like, without string) error {
	t := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: -1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}}
	// If it is not reported, both topics have the cluster's default.
	if settings, err := ReadTopicSettings(ctx, client, like); err == nil && settings["min.insync.replicas"] != "" {
		t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: settings["min.insync.replicas"]})
	}
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
