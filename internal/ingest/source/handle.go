package source

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/ledger"
	"go.uber.org/zap"
)

// Handle has what all parts of a worker share: the partition's name, its Kafka client, its group and its
// logger. None of its fields changes.
type Handle struct {
	ledger.Partition
	Field string // its name in the ledger and in messages: <topic>/<number>
	Kafka *kafka.Client
	Group string // in which offsets are committed
	Log   *zap.Logger
}

// Siblings returns the number of partitions of the topic.
func (p *Handle) Siblings(ctx context.Context) (int, error) {
	all, err := kafkaconn.Partitions(ctx, p.Kafka, p.Topic)
	if err != nil {
		return 0, err
	}
	n := all[p.Topic]
	if n <= p.Number {
		return 0, fmt.Errorf("topic %s has %d partitions and this is partition %d", p.Topic, n, p.Number)
	}
	return n, nil
}

// Settings are the limits of a fetch request.
type Settings struct {
	Bytes int // approximate size of a response
	Wait  time.Duration
}

// Fetcher returns a fetcher for a partition's records. It charges their memory to m; if m is nil, to no
// account.
func (s Settings) Fetcher(p *Handle, r memory.Room, m *memory.Account) *fetch.Fetcher {
	f := &fetch.Fetcher{
		Transport: p.Kafka.Transport, Addr: p.Kafka.Addr, ClientID: kafkaconn.ClientID, Topic: p.Topic, Partition: p.Number,
		MaxWait: s.Wait, MaxBytes: int32(min(int64(s.Bytes), r.MaxBatch/2)), MaxBatch: r.MaxBatch,
	}
	if m != nil {
		f.Memory = m
	}
	return f
}
