package rebuild

// Batches that take too much memory to read.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

// sendLarge appends a batch of twelve events that takes more than 9 MiB to decompress.
func (p *place) sendLarge() {
	p.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.cluster.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(time.Second), kgo.ProducerBatchCompression(kgo.SnappyCompression()), kgo.ProducerBatchMaxBytes(16<<20))
	require.NoError(p.t, err)
	defer client.Close()
	var all []*kgo.Record
	for i := range 12 {
		all = append(all, &kgo.Record{Value: fmt.Appendf(nil, `{"user_id":"m%d","points":1000,"pad":"%s"}`, i, strings.Repeat("x", 1<<20-100))})
	}
	require.NoError(p.t, client.ProduceSync(p.t.Context(), all...).FirstErr())
}

// run lets a consumer count all events, and returns how many it dead-lettered as too_large.
func (p *place) run(until int64) int64 {
	p.t.Helper()
	transport := &kafka.Transport{MetadataTTL: time.Second, MetadataTopics: []string{topic, event.DeadLetterTopic(topic)}}
	defer transport.CloseIdleConnections()
	c := p.settings
	c.Transport, c.Stats, c.Start = transport, new(counts.Stats), start.Where{From: start.FromEarliest}
	c.Dialer, c.Refusal = &kafka.Dialer{Timeout: 20 * time.Second}, func(context.Context) error { return nil }
	c.SessionTimeout, c.Heartbeat, c.CommitInterval, c.ShutdownTime = 20*time.Second, 200*time.Millisecond, 50*time.Millisecond, 50*time.Second
	for _, s := range p.live {
		c.Standings = append(c.Standings, standings{s})
	}
	ctx, stop := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ingest.New(c).Run(ctx) }()
	require.Eventually(p.t, func() bool {
		for shard := range p.live {
			if p.position(shard) != ledger.At(until).String() {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(p.t, <-ended)
	return c.Stats.Dead(event.TooLarge)
}

// A rebuild skips a batch that takes too much memory, as a consumer does, and reports it. It writes no dead
// letters.
func TestARebuildPassesABatchThatTakesTooMuchMemoryAsAConsumerDoes(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 0)
		p.publish(20, 7)
		p.sendLarge()
		p.publish(20, 7)
		require.Equal(t, int64(12), p.run(52))
		was := p.boards()
		for shard := range p.live { // a member without events
			for _, name := range p.redis.HKeys(t.Context(), p.keyOf(shard, "windows")).Val() {
				require.NoError(t, p.redis.Do(t.Context(), "ZADD", p.keyOf(shard, name), 1, "intruder").Err())
			}
		}
		letters := p.end(event.DeadLetterTopic(topic))
		p.job.From = replay.From{From: start.FromEarliest}
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, was, p.boards())
		require.Equal(t, int64(12), r.TooLarge)
		require.Equal(t, letters, p.end(event.DeadLetterTopic(topic)))

		p.settings.FoldMemory = 256 << 20
		r, err = p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Zero(t, r.TooLarge)
		require.NotEqual(t, was, p.boards())
		p.nothingLeft()
	})
}

// end returns the end offset of partition 0 of a topic.
func (p *place) end(topic string) int64 {
	p.t.Helper()
	ends, err := kadm.NewClient(p.kafka).ListCommittedOffsets(p.t.Context(), topic)
	require.NoError(p.t, err)
	o, ok := ends.Lookup(topic, 0)
	require.True(p.t, ok)
	require.NoError(p.t, o.Err)
	return o.Offset
}
