package ingest

// This file tests logs that differ from the log that was counted: a topic that was created again, an election
// that lost records, and look-ups by time that find only deleted records.

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
)

func TestTheLogOfAPartitionThatWasJustAddedIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs, asked := map[int]ledger.Log{0: {Topic: "id"}}, 0
		known := locate.NewIdentities(func(context.Context) (map[string]map[int]ledger.Log, error) {
			asked++
			return map[string]map[int]ledger.Log{topic: maps.Clone(logs)}, nil
		})
		of := func(number int) ledger.Log {
			log, err := known.Of(t.Context(), ledger.Partition{Topic: topic, Number: number})
			require.NoError(t, err)
			return log
		}
		require.Equal(t, ledger.Log{Topic: "id"}, of(0))
		require.Equal(t, ledger.Log{Topic: "id"}, of(0))
		require.Equal(t, 1, asked, "an answer is shared")

		logs[1] = ledger.Log{Topic: "id", Epoch: 2}
		require.Equal(t, logs[1], of(1), "added since the last answer")
		require.Equal(t, 2, asked)
	})
}

// epochEnds makes brokers report that the first epoch ends at an offset; they report the real end of later
// epochs.
func (w *world) epochEnds(end int64) {
	w.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		q := r.(*kmsg.OffsetForLeaderEpochRequest)
		asked := q.Topics[0].Partitions[0]
		if asked.LeaderEpoch > 0 {
			return nil, nil, false
		}
		a := q.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		p.Partition, p.LeaderEpoch, p.EndOffset = asked.Partition, 0, end
		of := kmsg.NewOffsetForLeaderEpochResponseTopic()
		of.Topic, of.Partitions = q.Topics[0].Topic, append(of.Partitions, p)
		a.Topics = append(a.Topics, of)
		return a, nil, true
	})
}

// With several shards, the start is committed only once all have started; and Kafka deletes the offsets of a
// group that is inactive for long.
func TestAnElectionThatLosesRecordsFromBeforeTheOriginHaltsIfNothingIsCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sendAt(time.Now().Add(-2*time.Hour), 10)
	w.want = board{}
	_, stop := w.consumer(func(c *Config) { c.Start.From = start.FromLatest })
	w.reaches(0)
	w.noted(0)
	require.NoError(t, stop())
	_, err := w.admin().DeleteGroup(t.Context(), w.config.Group)
	require.NoError(t, err)
	_, err = w.located(New(w.config), 0)
	require.NoError(t, err, "nothing is lost yet")

	w.epochEnds(4)
	require.NoError(t, w.cluster.MoveTopicPartition(topic, 0, 0))
	w.sendAt(time.Now(), 5)
	_, err = w.located(New(w.config), 0)
	halt := new(health.Halt)
	require.ErrorAs(t, err, &halt)
	require.Contains(t, halt.What, "has lost the events from offset 4 to 9")
}

// timesFindNothing makes look-ups by time find nothing.
func (w *world) timesFindNothing() {
	w.cluster.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		q := r.(*kmsg.ListOffsetsRequest)
		if q.Topics[0].Partitions[0].Timestamp < 0 {
			return nil, nil, false
		}
		a := q.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, t := range q.Topics {
			of := kmsg.NewListOffsetsResponseTopic()
			of.Topic = t.Topic
			for _, p := range t.Partitions {
				none := kmsg.NewListOffsetsResponseTopicPartition()
				none.Partition, none.Timestamp, none.Offset = p.Partition, -1, -1
				of.Partitions = append(of.Partitions, none)
			}
			a.Topics = append(a.Topics, of)
		}
		return a, nil, true
	})
}

func TestATimeThatFindsNothingInALogThatHasLostRecordsIsLookedForInTheRecords(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, from := range map[string]start.Where{"window": {From: start.FromWindow}, "time": {From: start.FromTime, Time: now.Add(-time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.sendAt(now.Add(-3*time.Hour), 5)
			w.sendAt(now.Add(-2*time.Hour), 5)
			if name == "time" {
				w.want = board{} // those events are older
			}
			w.sendAt(now, 5)
			require.NoError(t, w.cluster.DeleteRecords(topic, 0, 5))
			if name == "window" {
				w.want = board{}
				for _, at := range []time.Time{now.Add(-2 * time.Hour), now} {
					w.expect(at, 5)
				}
			}
			w.timesFindNothing()
			w.worker(0, func(c *Config) { c.Start = from })
			w.reaches(0)
		})
	}
}

func TestAStartThatWouldLeaveEventsOutHaltsWhereThereAreTracesOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	latest := func(c *Config) { c.Start = start.Where{From: start.FromLatest} }
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		w.send(0, some("a", 10, 5)...)
		w.want = board{}
		letter := &kgo.Record{Topic: event.DeadLetterTopic(topic), Value: []byte("another program's")}
		require.NoError(t, w.client.ProduceSync(t.Context(), letter).FirstErr())
		w.worker(0, latest)
		w.reaches(0)
		w.said(1, "first start: events that are in the log already do not count")
	})
	t.Run("dead letters", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		letter := &kgo.Record{Topic: event.DeadLetterTopic(topic), Headers: []kgo.RecordHeader{{Key: deadletter.HeaderReason, Value: []byte("invalid")}}}
		require.NoError(t, w.client.ProduceSync(t.Context(), letter).FirstErr())
		r := w.worker(0, latest)
		eventually(t, "it halts", func() bool { return r.status.Line().Reason == health.HaltGap })
		require.Contains(t, r.status.Line().What, "topic events.dlq has dead letters")
	})
	t.Run("an archive", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		r := w.worker(0, func(c *Config) {
			latest(c)
			c.Traces = func(context.Context) (string, error) { return "the archive has windows", nil }
		})
		eventually(t, "it halts", func() bool { return r.status.Line().Reason == health.HaltGap })
		require.Contains(t, r.status.Line().What, "the archive has windows")
	})
	t.Run("an archive that is away", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		r := w.worker(0, func(c *Config) {
			latest(c)
			c.Traces = func(context.Context) (string, error) { return "", errors.New("the archive is away") }
		})
		eventually(t, "it waits", func() bool { return r.status.Line().State == workers.StateWaiting })
	})
}
