package deadletter

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// source creates a topic on a real Kafka for this test, and a client with a consumer's metadata: it knows that
// the topic has no dead-letter topic.
func source(t *testing.T, partitions int) (topic string, topics *Topics, said *observer.ObservedLogs) {
	t.Helper()
	k := testenv.RealKafka(t, "that a topic which was just created isn't known everywhere")
	topic = testenv.Topic(t, partitions, nil)
	transport := kafkaconn.Settings{}.Transport(time.Second, topic, event.DeadLetterTopic(topic))
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(k.Addr()), Transport: kafkaconn.Robust(transport), Timeout: 10 * time.Second}
	found, err := kafkaconn.Partitions(t.Context(), client, topic, event.DeadLetterTopic(topic))
	require.NoError(t, err)
	require.Equal(t, map[string]int{topic: partitions}, found)
	t.Cleanup(func() {
		_, _ = kadm.NewClient(k.Client(t)).DeleteTopics(context.WithoutCancel(t.Context()), event.DeadLetterTopic(topic))
	})
	core, said := observer.New(zap.DebugLevel)
	return topic, &Topics{Client: client, Log: zap.New(core)}, said
}

// once tries to write one dead letter to a partition, one time.
func once(t *testing.T, topics *Topics, topic string, partition int) error {
	t.Helper()
	outbox := &Outbox{
		Partition: ledger.Partition{Topic: topic, Number: partition}, Client: topics.Client, Timeout: 10 * time.Second,
		Count: new(atomic.Int64), Tries: new(atomic.Int64),
	}
	w := outbox.Writer(func(error) {})
	w.Once = true
	if err := w.Add(t.Context(), &recordbatch.Record{Value: []byte("bad")}, nil, event.Malformed, "bad"); err != nil {
		return err
	}
	return w.Flush(t.Context())
}

// The client answers from its cached metadata for up to a second, and a leader may learn of the topic later
// than the broker that created it. A write at that moment would fail, report that it waits, and be tried again
// with a dead letter that the topic then has twice.
func TestADeadLetterTopicTakesItsFirstLetterAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		const partitions = 3
		topic, topics, said := source(t, partitions)
		made, err := topics.Ensure(t.Context(), topic, partitions, nil)
		require.NoError(t, err)
		require.True(t, made)
		topics.Await(t.Context(), topic, partitions)
		for p := range partitions {
			require.NoError(t, once(t, topics, topic, p))
		}
		require.Equal(t, 1, said.FilterMessage("dead-letter topic created").Len())
		require.Equal(t, 1, said.Len(), "%v", said.All())
	}
}

func TestADeadLetterTopicThatIsDeletedIsSaidToBeGoneAndMadeAgain(t *testing.T) {
	t.Parallel()
	const partitions = 2
	topic, topics, said := source(t, partitions)
	_, err := topics.Ensure(t.Context(), topic, partitions, nil)
	require.NoError(t, err)
	topics.Await(t.Context(), topic, partitions)
	require.NoError(t, once(t, topics, topic, 0))
	_, err = kadm.NewClient(testenv.Kafka(t).Client(t)).DeleteTopic(t.Context(), event.DeadLetterTopic(topic))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return once(t, topics, topic, 0) != nil }, 20*time.Second, 20*time.Millisecond, "until it is gone")
	require.Eventually(t, func() bool {
		topics.remakes.last = nil // skips the five seconds between checks
		require.NoError(t, topics.Remake(t.Context(), topic))
		return said.FilterMessage("the dead-letter topic is gone: making it again").Len() > 0
	}, 20*time.Second, 20*time.Millisecond)
	for p := range partitions {
		require.NoError(t, once(t, topics, topic, p), fmt.Sprint(p))
	}
}

// If Await cannot see the topic, it gives up after a while, and the write reports the error.
func TestADeadLetterTopicThatNeverComesIsWaitedForOnlyForAWhile(t *testing.T) {
	t.Parallel()
	topic, topics, _ := source(t, 1)
	began := time.Now()
	topics.Await(t.Context(), topic, 1)
	require.InDelta(t, seenWithin.Seconds(), time.Since(began).Seconds(), 2)
}
