package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

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
