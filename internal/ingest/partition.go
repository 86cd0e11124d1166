package ingest

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// partition has what all parts of a worker share: the partition's name, its Kafka client, its group and its
// logger. None of its fields changes.
type partition struct {
	ledger.Partition
	field string // its name in the ledger and in messages: <topic>/<number>
	kafka *kafka.Client
	group string // in which offsets are committed
	log   *zap.Logger
}

// siblings returns the number of partitions of the topic.
func (p *partition) siblings(ctx context.Context) (int, error) {
	all, err := kafkaconn.Partitions(ctx, p.kafka, p.Topic)
	if err != nil {
		return 0, err
	}
	n := all[p.Topic]
	if n <= p.Number {
		return 0, fmt.Errorf("topic %s has %d partitions and this is partition %d", p.Topic, n, p.Number)
	}
	return n, nil
}
