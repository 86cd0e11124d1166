// Package topics checks a consumer's topics before it joins its group: that they exist, that the consumer has the
// rights it needs, that no topic is compacted, and that each topic has a dead-letter topic.
package topics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Checker checks a consumer's topics before it joins its group.
type Checker struct {
	Kafka       *kafka.Client
	Group       string
	Topics      []string
	Rules       *fold.Rules
	DeadLetters *deadletter.Topics
	Log         *zap.Logger
}

// Check returns an error if a topic doesn't exist yet, or if the consumer must not read it. It creates missing
// dead-letter topics.
func (c *Checker) Check(ctx context.Context) error {
	if err := c.tryRights(ctx); err != nil {
		return err
	}
	partitions, err := kafkaconn.Partitions(ctx, c.Kafka, c.Topics...)
	if err != nil {
		return err
	}
	if err := Missing(c.Topics, partitions); err != nil {
		return err
	}
	if err := c.prepareTopics(ctx, partitions); err != nil {
		return err
	}
	return c.tryRights(ctx) // on dead-letter topics that were just created
}

// tryRights returns an error if this user lacks a right that the consumer needs later.
func (c *Checker) tryRights(ctx context.Context) error {
	return kafkaconn.CheckRights(ctx, c.Kafka, Needs(c.Group, c.Topics...)...)
}

// Missing returns an error if a topic has no partitions.
func Missing(topics []string, partitions map[string]int) error {
	var none []string
	for _, t := range topics {
		if partitions[t] == 0 {
			none = append(none, t)
		}
	}
	if len(none) > 0 {
		return fmt.Errorf("topic %s doesn't exist yet", strings.Join(none, ", "))
	}
	return nil
}

func (c *Checker) prepareTopics(ctx context.Context, partitions map[string]int) error {
	var made []string // topics whose dead-letter topic was created
	for _, topic := range c.Topics {
		settings, err := kafkaconn.ReadTopicSettings(ctx, c.Kafka, topic)
		switch {
		case errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed):
			c.Log.Info("no right to read the topic's configuration: its cleanup policy and retention aren't checked", zap.String("topic", topic))
		case err != nil && kafkaconn.Classify(err) == ledger.Retry:
			return err
		case err != nil:
			c.Log.Warn("couldn't read the topic's configuration: its cleanup policy and retention aren't checked", zap.String("topic", topic), zap.Error(err))
		default:
			if err := c.checkTopic(topic, settings); err != nil {
				return err
			}
		}
		created, err := c.DeadLetters.Ensure(ctx, topic, partitions[topic], settings)
		if err != nil {
			return err
		}
		if created {
			made = append(made, topic)
		}
	}
	for _, topic := range made { // after all are created: they become visible concurrently
		c.DeadLetters.Await(ctx, topic, partitions[topic])
	}
	return nil
}

// checkTopic refuses a compacted topic, and logs a warning if the topic's retention is shorter than windows
// stay open.
func (c *Checker) checkTopic(topic string, settings kafkaconn.TopicSettings) error {
	if err := CheckCompaction(topic, settings); err != nil {
		return err
	}
	forgets := Forgets(settings, c.Rules)
	if len(forgets) == 0 {
		return nil
	}
	retention, _ := settings.Retention()
	var names []string
	longest := time.Duration(0)
	for _, f := range forgets {
		names = append(names, string(f.Period))
		longest = max(longest, f.Open)
	}
	c.Log.Warn("the topic keeps events for less than windows are open: what it has dropped couldn't be rebuilt from it",
		zap.String("topic", topic), zap.Duration("retention", retention), zap.Strings("periods", names), zap.Duration("longest_window_and_lateness", longest))
	return nil
}
