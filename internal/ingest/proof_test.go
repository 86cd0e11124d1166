package ingest

// This file tests what can be proven about records that were deleted from the log, end to end against a Kafka,
// from the records to the origin.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// expect makes n records of a given time count.
func (w *world) expect(when time.Time, n int) (users []string) {
	for i := range n {
		e := earned{User: fmt.Sprintf("at%d-%d", when.UnixMilli(), i), Points: 5, At: when.UnixMilli()}
		w.counts(e)
		users = append(users, e.User)
	}
	return users
}

// sendAt publishes n records of a given time to partition 0.
func (w *world) sendAt(when time.Time, n int) {
	w.t.Helper()
	var records []*kgo.Record
	for _, user := range w.expect(when, n) {
		records = append(records, &kgo.Record{
			Timestamp: time.UnixMilli(when.UnixMilli()),
			Value:     fmt.Appendf(nil, `{"user_id":%q,"points":5}`, user),
		})
	}
	require.NoError(w.t, w.client.ProduceSync(context.Background(), records...).FirstErr())
}

// originTime returns the time of partition 0's origin, in Unix ms.
func (w *world) originTime() (ms int64) {
	w.t.Helper()
	w.standings.do(func() {
		o, err := ledger.ParseOrigin(w.standings.origin(w.t, "events/0"))
		require.NoError(w.t, err)
		ms = o.Time
	})
	return ms
}

// The process sleeps after it has queried Redis, including its clock, and queries Kafka an hour later: the
// records that were deleted by then may be from that hour.
func TestTheMomentThatBoundsIsNoEarlierThanKafkasAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	now := time.Now()
	w.sendAt(now, 3)
	w.truncate(2)
	slept := func(s *ledger.State) { s.Now, s.Asked = now.Add(-time.Hour), now.Add(-time.Hour) }
	t.Run("a start", func(t *testing.T) {
		cfg := w.config
		cfg.Standings = nil
		for _, s := range w.standings.shards {
			cfg.Standings = append(cfg.Standings, &later{s, slept})
		}
		_, err := w.located(New(cfg), 0)
		require.NoError(t, err)
		require.Greater(t, w.originTime(), now.UnixMilli())
	})
	t.Run("a rebuild", func(t *testing.T) {
		live := w.states()
		for i := range live {
			slept(&live[i])
		}
		cfg := w.config
		cfg.Standings, cfg.Stats = newFake().standings(), new(counts.Stats)
		all, err := NewReplay(cfg).Starts(t.Context(), replay.From{From: start.FromEarliest}, live, []string{"events/0"})
		require.NoError(t, err)
		for shard := range live {
			require.Greater(t, all[shard][0].Origin.Time, now.UnixMilli())
		}
	})
}

// later are standings whose state was read earlier.
type later struct {
	*fakeShard

	ago func(*ledger.State)
}

func (l *later) State(ctx context.Context) (ledger.State, error) {
	s, err := l.fakeShard.State(ctx)
	l.ago(&s)
	return s, err
}

// A log that exceeds the operator's limit on disorder is logged and counted. A record that is read twice counts
// once.
func TestALogThatBreaksTheWordOnDisorderSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	now := time.Now()
	hour := time.Hour
	w.config.Disorder = &hour
	w.sendAt(now.Add(-30*time.Minute), 3)
	w.sendAt(now.Add(-80*time.Minute), 3)
	_, stop := w.consumer(nil)
	w.reaches(0)
	require.Zero(t, w.stats.Disordered.Load())
	w.sendAt(now.Add(-100*time.Minute), 3)
	w.sendAt(now, 3)
	w.reaches(0)
	require.NoError(t, stop())
	require.Equal(t, int64(3), w.stats.Disordered.Load())
	require.Equal(t, 1, w.logged("than disorder says"))
}

// A broker with a small offset.metadata.max.bytes gets offsets without a trail.
func TestABrokerThatTakesNoTrailGetsOffsetsWithoutAndItIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		r := request.(*kmsg.OffsetCommitRequest)
		response := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range r.Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				if p.Metadata == nil || *p.Metadata == "" {
					return nil, nil, false
				}
				partition := kmsg.NewOffsetCommitResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, 12
				topic.Partitions = append(topic.Partitions, partition)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	w.send(0, some("a", 5, 5)...)
	c, stop := w.consumer(nil)
	w.reaches(0)
	committed := func() kafkaconn.Commit {
		all, err := kafkaconn.Committed(t.Context(), c.kafka, c.Group, topic, 0)
		require.NoError(t, err)
		return all[0]
	}
	eventually(t, "the offset is committed", func() bool { return committed().Offset == 5 })
	w.send(0, some("b", 5, 5)...)
	eventually(t, "the next one is committed", func() bool { return committed().Offset == 10 })
	require.Empty(t, committed().Metadata)
	require.NoError(t, stop())
	require.Equal(t, 1, w.logged("offset.metadata.max.bytes"))
	require.Zero(t, w.logged("couldn't commit"))
}
