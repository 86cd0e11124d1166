package app

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/kafkaconn"
)

// ReadTopic is a topic that a consumer reads.
type ReadTopic struct {
	Name       string
	Partitions int
	Committed  map[int]kafkaconn.Commit
}

// ReadTopics returns the configured topics, with the offsets that the configured group has committed.
func ReadTopics(ctx context.Context, cfg *config.Config, client *kafka.Client) (all []ReadTopic, err error) {
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
	if err != nil {
		return nil, fmt.Errorf("ask Kafka for its topics: %w", err)
	}
	for _, t := range m.Topics {
		if t.Error != nil {
			return nil, fmt.Errorf("ask Kafka for the topic %s: %w", t.Name, t.Error)
		}
		committed, err := kafkaconn.Committed(ctx, client, cfg.Kafka.Group, t.Name, kafkaconn.UpTo(len(t.Partitions))...)
		if err != nil {
			return nil, fmt.Errorf("read the offsets of group %s for %s: %w", cfg.Kafka.Group, t.Name, err)
		}
		all = append(all, ReadTopic{t.Name, len(t.Partitions), committed})
	}
	return all, nil
}

// Reach returns how far back the logs of some topics reach, for the partition with the shortest reach. The
// consumer need not run. clock is Redis's clock.
func Reach(ctx context.Context, c *ingest.Consumer, topics []ReadTopic, clock func() time.Time) (least locate.Reach, err error) {
	for _, t := range topics {
		r, err := c.Reach(ctx, t.Name, t.Partitions, t.Committed, clock)
		if err != nil {
			return locate.Reach{}, err
		}
		least = least.Least(r)
	}
	return least, nil
}
