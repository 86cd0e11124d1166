package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// awaitTopics waits until every topic exists, checks the topics' configuration, and creates their dead-letter
// topics. If the consumer joined the group before all topics exist, the existing topics would not be read.
func (c *Consumer) awaitTopics(ctx context.Context) error {
	var logged retry.LogLimit
	wait := retry.ForEver.Start()
	for {
		err := c.tryTopics(ctx)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // done, or the context has ended
		}
		if err := c.final(ctx, err); err != nil {
			return err
		}
		c.membership.outside(err)
		if logged.Due(health.WaitTold) {
			c.Log.Warn("waiting for Kafka", zap.Error(err))
		}
		if wait.Next(ctx) != nil {
			return nil //nolint:nilerr // the context has ended
		}
	}
}

func (c *Consumer) tryTopics(ctx context.Context) error {
	if err := c.tryRights(ctx); err != nil {
		return err
	}
	partitions, err := kafkaconn.Partitions(ctx, c.kafka, c.Topics...)
	if err != nil {
		return err
	}
	if err := missing(c.Topics, partitions); err != nil {
		return err
	}
	if err := c.prepareTopics(ctx, partitions); err != nil {
		return err
	}
	return c.tryRights(ctx) // on dead-letter topics that were just created
}

// tryRights returns an error if this user lacks a right that the consumer needs later.
func (c *Consumer) tryRights(ctx context.Context) error {
	return kafkaconn.CheckRights(ctx, c.kafka, Needs(c.Group, c.Topics...)...)
}

func missing(topics []string, partitions map[string]int) error {
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

func (c *Consumer) prepareTopics(ctx context.Context, partitions map[string]int) error {
	var made []string // topics whose dead-letter topic was created
	for _, topic := range c.Topics {
		settings, err := kafkaconn.ReadTopicSettings(ctx, c.kafka, topic)
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
		created, err := c.deadLetters.Ensure(ctx, topic, partitions[topic], settings)
		if err != nil {
			return err
		}
		if created {
			made = append(made, topic)
		}
	}
	for _, topic := range made { // after all are created: they become visible concurrently
		c.deadLetters.Await(ctx, topic, partitions[topic])
	}
	return nil
}

// checkTopic refuses a compacted topic, and logs a warning if the topic's retention is shorter than windows
// stay open.
func (c *Consumer) checkTopic(topic string, settings kafkaconn.TopicSettings) error {
	if err := CheckCompaction(topic, settings); err != nil {
		return err
	}
	forgets := Forgets(settings, &c.Rules)
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

// final returns the error with which the process ends, or nil if err may be transient. If a broker shuts down
// during authentication, kafka-go reports that the broker refuses the user, so Refusal asks the brokers again.
func (c *Consumer) final(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return c.Refusal(ctx)
	case errors.As(err, new(*CompactError)), kafkaconn.Classify(err).AtStart() == ledger.Refuse:
		return err
	}
	return nil
}
