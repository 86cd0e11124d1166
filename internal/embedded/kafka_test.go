package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestAnEmbeddedKafkaTakesAConsumerGroupOfOurClient(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	k, err := StartKafka(ctx, KafkaOptions{Topics: map[string]int{"events": 3, "other": 1}})
	require.NoError(t, err)
	defer k.Close()

	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(k.Addresses()...), Transport: transport}
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	require.NoError(t, err)
	require.Equal(t, KafkaClusterID, metadata.ClusterID)

	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: "standings", Brokers: k.Addresses(), Topics: []string{"events"},
		HeartbeatInterval: time.Second, SessionTimeout: 10 * time.Second, JoinGroupBackoff: time.Second,
	})
	require.NoError(t, err)
	generation, err := group.Next(ctx)
	require.NoError(t, err)
	require.Len(t, generation.Assignments["events"], 3)
	require.NoError(t, generation.CommitOffsets(map[string]map[int]int64{"events": {1: 42}}))
	committed, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: "standings", Topics: map[string][]int{"events": {1}}})
	require.NoError(t, err)
	require.EqualValues(t, 42, committed.Topics["events"][0].CommittedOffset)
	require.NoError(t, group.Close())
}

func TestAnEmbeddedKafkaShowsCommittedTransactionsOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	k, err := StartKafka(ctx, KafkaOptions{Topics: map[string]int{"events": 1}})
	require.NoError(t, err)
	defer k.Close()

	producer, err := kgo.NewClient(kgo.SeedBrokers(k.Addresses()...), kgo.TransactionalID("t"), kgo.DefaultProduceTopic("events"))
	require.NoError(t, err)
	defer producer.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		require.NoError(t, producer.BeginTransaction())
		value := "aborted"
		if end == kgo.TryCommit {
			value = "committed"
		}
		require.NoError(t, producer.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr())
		require.NoError(t, producer.EndTransaction(ctx, end))
	}

	consumer, err := kgo.NewClient(kgo.SeedBrokers(k.Addresses()...), kgo.ConsumeTopics("events"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	defer consumer.Close()
	fetches := consumer.PollFetches(ctx)
	require.NoError(t, fetches.Err())
	records := fetches.Records()
	require.Len(t, records, 1)
	require.Equal(t, "committed", string(records[0].Value))
	require.EqualValues(t, 2, records[0].Offset, "after an aborted record and its marker")
}

func TestAnEmbeddedKafkaRefusesATopicWithoutPartitions(t *testing.T) {
	_, err := StartKafka(t.Context(), KafkaOptions{Topics: map[string]int{"events": 0}})
	require.ErrorContains(t, err, "events")
}

func TestAnEmbeddedKafkaDoesNotStartOnceItsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := StartKafka(ctx, KafkaOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestAnEmbeddedKafkaKeepsNoMoreOfItsLogThanItWasToldTo(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	k, err := StartKafka(ctx, KafkaOptions{Topics: map[string]int{"events": 1}, Keep: 64 << 10})
	require.NoError(t, err)
	defer k.Close()
	producer, err := kgo.NewClient(kgo.SeedBrokers(k.Addresses()...), kgo.DefaultProduceTopic("events"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	defer producer.Close()
	const records, size = 100, 4 << 10
	for range records {
		require.NoError(t, producer.ProduceSync(ctx, kgo.SliceRecord(make([]byte, size))).FirstErr())
	}
	require.Eventually(t, func() bool {
		offsets, err := kadm.NewClient(producer).ListStartOffsets(ctx, "events")
		require.NoError(t, err)
		o, ok := offsets.Lookup("events", 0)
		return ok && o.Err == nil && o.Offset >= records-(64<<10)/size && o.Offset < records
	}, 10*time.Second, 20*time.Millisecond)
}
