package deadletter

// A Kafka (franz-go's fake broker) with a dead-letter topic, and a partition's outbox that writes to it.

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

const topic = "events"

var dlq = event.DeadLetterTopic(topic)

type world struct {
	t         *testing.T
	cluster   *kfake.Cluster
	transport *kafka.Transport
	outbox    *Outbox
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic, dlq))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	transport := &kafka.Transport{MetadataTTL: time.Minute, MetadataTopics: []string{topic, dlq}}
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Transport: kafkaconn.Robust(transport), Timeout: 20 * time.Second}
	return &world{t: t, cluster: cluster, transport: transport, outbox: &Outbox{
		Partition: ledger.Partition{Topic: topic}, Client: client, Timeout: 20 * time.Second, Count: new(atomic.Int64), Tries: new(atomic.Int64),
	}}
}

// writer returns a Writer that ignores waits.
func (w *world) writer() *Writer { return w.outbox.Writer(func(error) {}) }

// write adds records with a fixed reason and message, and writes them.
func (w *world) write(to *Writer, records ...*recordbatch.Record) error {
	w.t.Helper()
	for _, r := range records {
		if err := to.Add(w.t.Context(), r, nil, event.Malformed, "bad"); err != nil {
			return err
		}
	}
	return to.Flush(w.t.Context())
}

// answer makes the broker answer writes with an error code chosen by the size of the records; 0 lets the write
// through.
func (w *world) answer(code func(size int) int16) {
	w.cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		c := code(len(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records))
		return produced(r, c, 0), nil, c != 0
	})
}

// produced returns an answer to a write.
func produced(r kmsg.Request, code int16, throttleMS int32) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.ProduceResponse)
	resp.ThrottleMillis = throttleMS
	p := kmsg.NewProduceResponseTopicPartition()
	p.ErrorCode = code
	t := kmsg.NewProduceResponseTopic()
	t.Topic, t.Partitions = dlq, []kmsg.ProduceResponseTopicPartition{p}
	resp.Topics = append(resp.Topics, t)
	return resp
}

// all returns the first n records of the dead-letter topic.
func (w *world) all(n int) (all []*kgo.Record) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.ListenAddrs()...), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{dlq: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(w.t, err)
	defer c.Close()
	for len(all) < n {
		fetches := c.PollFetches(ctx)
		require.NoError(w.t, ctx.Err())
		all = append(all, fetches.Records()...)
	}
	require.Len(w.t, all, n)
	return all
}

// headers returns a record's headers, by name.
func headers(r *kgo.Record) map[string]string {
	all := map[string]string{}
	for _, h := range r.Headers {
		all[h.Key] = string(h.Value)
	}
	return all
}
