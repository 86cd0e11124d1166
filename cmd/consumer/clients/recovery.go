package clients

// What would bring the standings of a configuration back if Redis were lost now.

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/recovery"
)

// ReadTopic is a topic that is read.
type ReadTopic struct {
	Name       string
	Partitions int
	Committed  map[int]kafkaconn.Commit
}

// ReadTopics are those of a configuration whose group is in use.
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
			return nil, fmt.Errorf("ask Kafka what the group %s has committed of %s: %w", cfg.Kafka.Group, t.Name, err)
		}
		all = append(all, ReadTopic{t.Name, len(t.Partitions), committed})
	}
	return all, nil
}

// Recovery looks how far back the logs reach, and judges that and the snapshots there are, the newest
// first. The consumer need not run. The clock is Redis's.
func Recovery(ctx context.Context, cfg *config.Config, c *ingest.Consumer, topics []ReadTopic, all *boards.Boards, clock func() time.Time, kept []snapshot.Manifest) (recovery.Verdict, error) {
	var partitions []recovery.Partition
	for _, t := range topics {
		reach, err := c.Reach(ctx, t.Name, t.Partitions, t.Committed, clock)
		if err != nil {
			return recovery.Verdict{}, err
		}
		for _, r := range reach {
			partitions = append(partitions, recovery.Partition{Partition: r.Partition, Log: r.Log, Whole: r.Whole})
		}
	}
	rules, err := RuleSet(cfg)
	if err != nil {
		return recovery.Verdict{}, err
	}
	var taken []recovery.Taken
	for i := range kept {
		if kept[i].Prefix == cfg.Redis.Prefix {
			taken = append(taken, takenOf(&kept[i], ledger.Shards(len(all.Shards()))))
		}
	}
	return recovery.Decide(partitions, taken, recovery.Wanted{Schema: all.Shards()[0].Schema(), Rules: rules.Fingerprint()}), nil
}

func takenOf(m *snapshot.Manifest, shards ledger.Shards) recovery.Taken {
	t := recovery.Taken{Name: m.Name, Began: m.Began}
	t.Schema, _ = ranking.SchemaOn(m.Schema, shards) // where that fails it is another one
	for _, f := range m.Files {
		t.Begin, t.Rules = append(t.Begin, f.Begin), append(t.Rules, f.Rules...)
	}
	return t
}
