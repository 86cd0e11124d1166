package ingest

// This file tests what can be proven about records that were deleted from the log, end to end against a Kafka,
// from the records to the origin.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
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

// starts returns where a rebuild would start.
func (w *world) starts(from start.From, change func(*Config)) replay.Start {
	w.t.Helper()
	cfg := w.config
	cfg.Standings, cfg.Stats = newFake().standings(), new(counts.Stats)
	if change != nil {
		change(&cfg)
	}
	all, err := NewReplay(cfg).Starts(w.t.Context(), replay.From{From: from}, w.states(), []string{"events/0"})
	require.NoError(w.t, err)
	require.Len(w.t, all, int(of))
	least := slices.MinFunc(all, func(a, b []replay.Start) int { return cmp.Compare(a[0].Origin.Time, b[0].Origin.Time) })
	for shard, s := range all {
		require.Len(w.t, s, 1)
		require.Equal(w.t, least[0].At, s[0].At, "shard %d", shard)
		require.InDelta(w.t, least[0].Origin.Time, s[0].Origin.Time, 60_000, "by clocks of their own: shard %d", shard)
	}
	return least[0]
}

const sinceThen = 24 * time.Hour

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

func (w *world) gapContinues() Config {
	cfg := w.config
	cfg.OnGap = start.GapContinues
	return cfg
}

// Kafka's committed offsets keep the times of what a consumer has read, when both the records and Redis are
// gone.
func TestTheTimesOfWhatKafkaDeletesAreInWhatTheGroupHasCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	now := time.Now()
	old, recent := now.Add(-500*sinceThen), now.Add(-2*time.Hour)
	w.sendAt(old, 20)
	w.sendAt(old.Add(-3*sinceThen), 1)
	w.sendAt(recent, 10)
	_, stop := w.consumer(nil)
	w.reaches(0)
	require.NoError(t, stop())
	w.truncate(21)

	s := w.starts(start.FromEarliest, nil)
	require.Equal(t, int64(21), s.At)
	require.Equal(t, old.UnixMilli()+300_000+1, s.Origin.Time)

	// Redis is lost, and the log covers every live window: the boards are refilled.
	w.standings.do(w.standings.wiped)
	_, err := w.located(New(w.config), 0)
	require.NoError(t, err)
	require.Less(t, w.originTime(), now.Add(-400*sinceThen).UnixMilli())
	require.Equal(t, "21", w.standings.at(0))
	w.standings.do(w.standings.wiped)

	// More is deleted, now from live windows: the worker halts, or continues and reports from when on all
	// events are present.
	w.truncate(25)
	_, err = w.located(New(w.config), 0)
	halt, ok := errors.AsType[*health.Halt](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, health.HaltGap, halt.Reason)
	require.Contains(t, halt.What, recent.Add(5*time.Minute).UTC().Format("2006-01-02T15:04"))
	_, err = w.located(New(w.gapContinues()), 0)
	require.NoError(t, err)
	require.Equal(t, recent.UnixMilli()+300_000+1, w.originTime())
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
