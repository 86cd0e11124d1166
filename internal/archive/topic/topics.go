package topic

// The two topics, and the required rights.

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
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

// Published describes the topic that records published windows.
func Published(topic string) kafkaconn.Compacted {
	return kafkaconn.Compacted{
		Topic: topic, Loses: "forgets which windows are published", Several: "it has to have one; delete it and it is created",
	}
}

// Ensure creates the missing topics: the final topic with as many partitions as source, and the topic of
// published windows. The errors of the latter are those of kafkaconn.Compacted.Ensure.
func Ensure(ctx context.Context, client *kafka.Client, topic, source string) (made []string, err error) {
	found, err := kafkaconn.Partitions(ctx, client, source)
	if err != nil {
		return nil, err
	}
	n := max(found[source], 1)
	without := fmt.Sprintf("create the topic, with cleanup.policy=compact and %d partitions, of which one will do", n)
	is, err := kafkaconn.EnsureCompacted(ctx, client, topic, n, source, without)
	if is {
		made = append(made, topic)
	}
	if err != nil {
		return made, err
	}
	published := Published(topic + PublishedSuffix)
	if is, err = published.Ensure(ctx, client, source); is {
		made = append(made, published.Topic)
	}
	return made, err
}
