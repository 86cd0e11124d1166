package topic

// The two topics, and the required rights.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// TransactionalID returns the transactional id of a consumer's replicas. Each group and prefix has one.
func TransactionalID(group, prefix string) string { return group + "." + prefix + ".final" }

// Needs returns the rights that publishing requires. The right Write on a transactional id includes what else a
// producer needs: no version of Kafka requires IdempotentWrite on the cluster from a transactional producer.
func Needs(topic, transactionalID string) []kafkaconn.Right {
	published := topic + PublishedSuffix
	return []kafkaconn.Right{
		{Operation: kafka.ACLOperationTypeWrite, Topic: topic, For: "to publish final windows"},
		{Operation: kafka.ACLOperationTypeWrite, Topic: published, For: "to record which windows are published"},
		{Operation: kafka.ACLOperationTypeRead, Topic: published, For: "to know which windows are published"},
		{Operation: kafka.ACLOperationTypeWrite, TransactionID: transactionalID, For: "to publish final windows whole"},
		{Operation: kafka.ACLOperationTypeDescribeConfigs, Topic: published, For: "to check that it is compacted", Optional: true},
	}
}

// PolicyError reports a topic with unsuitable settings, and the remedy.
type PolicyError struct{ Topic, What, Remedy string }

func (e *PolicyError) Error() string {
	return fmt.Sprintf("topic %s %s: %s", e.Topic, e.What, e.Remedy)
}

// CheckPublished returns a *PolicyError if the topic of published windows could lose records or has several
// partitions, and so no total order. settings is nil if they could not be read.
func CheckPublished(topic string, partitions int, settings kafkaconn.TopicSettings) error {
	if partitions > 1 {
		return &PolicyError{topic, fmt.Sprintf("has %d partitions", partitions), "it has to have one; delete it and it is created"}
	}
	if policy, ok := settings["cleanup.policy"]; ok && strings.TrimSpace(policy) != "compact" {
		return &PolicyError{topic, "has cleanup.policy=" + policy + ", which forgets which windows are published",
			"run kafka-configs --alter --topic " + topic + " --add-config cleanup.policy=compact"}
	}
	return nil
}

// ErrUnchecked reports that the topic's cleanup policy could not be read because a right is missing.
var ErrUnchecked = errors.New("no right to read the configuration of the topic of what is published: it isn't checked that it is compacted")

// Ensure creates the missing topics: the final topic with as many partitions as source, and the compacted topic of
// published windows with one. If the latter could lose records, the error is a *PolicyError. If this cannot be
// checked, the error is ErrUnchecked, and the topics can be used.
func Ensure(ctx context.Context, client *kafka.Client, topic, source string) (made []string, err error) {
	published := topic + PublishedSuffix
	found, err := kafkaconn.Partitions(ctx, client, topic, published, source)
	if err != nil {
		return nil, err
	}
	for _, t := range []struct {
		name       string
		partitions int
	}{{topic, max(found[source], 1)}, {published, 1}} {
		if found[t.name] > 0 {
			continue
		}
		without := fmt.Sprintf("create the topic, with cleanup.policy=compact and %d partitions, of which one will do", t.partitions)
		if t.partitions == 1 {
			without = "create the topic, with cleanup.policy=compact and 1 partition"
		}
		if err := kafkaconn.CreateCompacted(ctx, client, t.name, t.partitions, source, without); err != nil {
			return made, err
		}
		if err := known(ctx, client, t.name); err != nil {
			return made, err
		}
		made = append(made, t.name)
	}
	if err := CheckPublished(published, found[published], nil); err != nil {
		return made, err
	}
	var settings kafkaconn.TopicSettings
	err = kafkaconn.RetryTransient(ctx, client, func() (err error) {
		settings, err = kafkaconn.ReadTopicSettings(ctx, client, published)
		return err
	})
	if errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed) {
		return made, ErrUnchecked
	}
	if err != nil {
		return made, err
	}
	return made, CheckPublished(published, 1, settings)
}

// known waits until a created topic is known to its leaders.
func known(ctx context.Context, client *kafka.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	passes := func(err error) bool {
		return errors.Is(err, kafkaconn.ErrNoTopic) || kafkaconn.Classify(err) == ledger.Retry
	}
	return retry.Policy{First: 50 * time.Millisecond, Longest: time.Second}.Do(ctx, passes, func() error {
		n, err := kafkaconn.TopicPartitions(ctx, client, topic)
		if err == nil {
			_, err = kafkaconn.Logs(ctx, client, topic, kafkaconn.UpTo(n)...)
		}
		return err
	})
}
