package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
)

// awaitTopics waits until every topic exists, checks what its configuration
// means for the standings, and sees to its dead-letter topic. Joining a group
// earlier would keep the topics that do exist from being read.
func (c *Consumer) awaitTopics(ctx context.Context) error {
	told := time.Time{}
	wait := newWait()
	for {
		err := c.tryTopics(ctx)
		if err == nil {
			return nil
		}
		if err := c.final(ctx, err); err != nil {
			return err
		}
		c.membership.outside(err)
		if time.Since(told) >= waitTold {
			told = time.Now()
			c.Log.Warn("waiting for Kafka", zap.Error(err))
		}
		if wait.next(ctx) != nil {
			return nil //nolint:nilerr // told to stop
		}
	}
}

func (c *Consumer) tryTopics(ctx context.Context) error {
	if err := c.tryRights(ctx); err != nil {
		return err
	}
	partitions, err := c.kafka.metadata(ctx, c.Topics...)
	if err != nil {
		return err
	}
	if err := missing(c.Topics, partitions); err != nil {
		return err
	}
	if err := c.prepareTopics(ctx, partitions); err != nil {
		return err
	}
	return c.tryRights(ctx) // on dead-letter topics that weren't there before
}

// tryRights refuses to start without a right that would be missed later.
func (c *Consumer) tryRights(ctx context.Context) error {
	lacking, err := Missing(ctx, c.kafka.client, Needs(c.Group, c.Topics...))
	if err != nil {
		return err
	}
	return Required(lacking)
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
	for _, topic := range c.Topics {
		settings, err := c.kafka.settings(ctx, topic)
		switch {
		case errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed):
			c.Log.Info("no right to read the topic's configuration: its cleanup policy and retention aren't checked", zap.String("topic", topic))
		case err != nil && Meaning(err) == ledger.Retry:
			return err
		case err != nil:
			c.Log.Warn("couldn't read the topic's configuration: its cleanup policy and retention aren't checked", zap.String("topic", topic), zap.Error(err))
		default:
			if err := c.checkTopic(topic, settings); err != nil {
				return err
			}
		}
		if err := c.ensureDeadLetters(ctx, topic, partitions[topic], settings); err != nil {
			return err
		}
	}
	return nil
}

// checkTopic refuses a compacted topic and warns of one that forgets too early.
func (c *Consumer) checkTopic(topic string, settings TopicSettings) error {
	if err := settings.Compacted(topic); err != nil {
		return err
	}
	retention, _ := settings.Retention()
	for _, f := range settings.Forgets(&c.Rules) {
		c.Log.Warn("the topic keeps events for less than a window is open: what it has dropped couldn't be rebuilt from it",
			zap.String("topic", topic), zap.Duration("retention", retention), zap.String("period", string(f.Period)), zap.Duration("window_and_lateness", f.Open))
	}
	return nil
}

// copied are the settings that a dead-letter topic takes from its source.
var copied = []string{"retention.ms", "retention.bytes", "max.message.bytes", "min.insync.replicas"}

// ensureDeadLetters makes the dead-letter topic like its source, where it is
// missing, and as many partitions as its source has.
func (c *Consumer) ensureDeadLetters(ctx context.Context, topic string, partitions int, settings TopicSettings) error {
	name := DeadLetterTopic(topic)
	found, err := c.kafka.metadata(ctx, name)
	if err != nil {
		return err
	}
	if n := found[name]; n >= partitions {
		return nil
	} else if n > 0 {
		c.growDeadLetters(ctx, topic, partitions)
		return nil
	}
	if err := c.createDeadLetters(ctx, topic, partitions, settings); err != nil {
		// Bad events will block their partitions until it is there: said now, and
		// said again then.
		c.Log.Warn("couldn't create the dead-letter topic; create it, or bad events will hold up their partitions",
			zap.String("topic", name), zap.Int("partitions", partitions), zap.Error(err))
	}
	return nil
}

func (c *Consumer) createDeadLetters(ctx context.Context, topic string, partitions int, settings TopicSettings) error {
	name := DeadLetterTopic(topic)
	t := kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: -1}
	for _, key := range copied {
		if v, ok := settings[key]; ok {
			t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: v})
		}
	}
	ctx, cancel := c.kafka.call(ctx)
	defer cancel()
	r, err := c.kafka.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{t}})
	if err == nil {
		err = r.Errors[name]
	}
	switch {
	case err == nil:
		c.Log.Info("dead-letter topic created", zap.String("topic", name), zap.Int("partitions", partitions))
	case errors.Is(err, kafka.TopicAlreadyExists): // another replica was faster
	default:
		return err
	}
	return nil
}

// growDeadLetters adds the partitions that the source has more.
func (c *Consumer) growDeadLetters(ctx context.Context, topic string, partitions int) {
	ctx, cancel := c.kafka.call(ctx)
	defer cancel()
	name := DeadLetterTopic(topic)
	r, err := c.kafka.client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(partitions)}},
	})
	if err == nil {
		err = r.Errors[name]
	}
	if err != nil && !errors.Is(err, kafka.InvalidPartitionNumber) {
		c.Log.Warn("couldn't add partitions to the dead-letter topic; add them, or bad events will hold up the new ones",
			zap.String("topic", name), zap.Int("partitions", partitions), zap.Error(err))
	}
}
