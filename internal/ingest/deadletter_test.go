package ingest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/event"
)

// refuse has the broker answer writes of dead letters with a code, where one is
// given for the partition and the size of what is written.
func (w *world) refuse(code func(partition int32, size int) int16) {
	w.cluster.ControlKey(0, func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		req := r.(*kmsg.ProduceRequest)
		t := req.Topics[0]
		if t.Topic != DeadLetterTopic(topic) {
			return nil, nil, false
		}
		c := code(t.Partitions[0].Partition, len(t.Partitions[0].Records))
		if c == 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode = t.Partitions[0].Partition, c
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.Partitions = t.Topic, []kmsg.ProduceResponseTopicPartition{p}
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
}

const (
	codeTooLarge     = 10
	codeFewReplicas  = 19
	codeUnauthorized = 29
)

func TestADeadLetterIsTheOriginalWithItsReasonAndSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	require.NoError(t, w.client.ProduceSync(t.Context(), &kgo.Record{
		Partition: 1, Key: []byte("k"), Value: []byte(`{"user_id":1,"points":"5"}`), Timestamp: at,
		Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("abc")}},
	}).FirstErr())
	w.worker(1, nil)
	w.reaches(1)
	require.Equal(t, []map[string]string{{
		"key": "k", "value": `{"user_id":1,"points":"5"}`, "trace": "abc",
		"standings-reason": "invalid", "standings-topic": topic, "standings-partition": "1", "standings-offset": "0",
		"standings-timestamp": fmt.Sprint(at.UnixMilli()), "standings-message": w.deadLetters(1)[0]["standings-message"],
	}}, w.deadLetters(1))
	require.Contains(t, w.deadLetters(1)[0]["standings-message"], "points")
}

func TestADeadLetterNamesTheEventByItsIDWhereverThatStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	headers := func(all ...string) (h []kgo.RecordHeader) {
		for i := 0; i < len(all); i += 2 {
			h = append(h, kgo.RecordHeader{Key: all[i], Value: []byte(all[i+1])})
		}
		return h
	}
	require.NoError(t, w.client.ProduceSync(t.Context(),
		&kgo.Record{Value: []byte(`{"event_id":"own","points":5}`)},
		&kgo.Record{Value: []byte(`{"points":5}`), Headers: headers("ce_specversion", "1.0", "ce_id", "binary")},
		&kgo.Record{Value: []byte(`{"specversion":"1.0","id":"structured","data":{"points":5}}`), Headers: headers("content-type", "application/cloudevents+json")},
		&kgo.Record{Value: []byte(`{"points":5}`)},
		// In the decoder's buffer, one after the other.
		&kgo.Record{Value: []byte(`{"event_id":"\u0061-1","points":5}`)},
		&kgo.Record{Value: []byte(`{"event_id":"\u0061-2","points":5}`)},
	).FirstErr())
	w.worker(0, nil)
	w.reaches(0)
	var ids []string
	for _, letter := range w.deadLetters(0) {
		require.Equal(t, "invalid", letter["standings-reason"])
		ids = append(ids, letter["standings-event-id"])
	}
	require.Equal(t, []string{"own", "binary", "structured", "", "a-1", "a-2"}, ids)
}

func TestNothingIsAppliedBeforeItsDeadLettersAreAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var denied atomic.Bool
	denied.Store(true)
	w.refuse(func(partition int32, _ int) int16 {
		if denied.Load() && partition == 0 {
			return codeFewReplicas
		}
		return 0
	})
	for p := range 2 {
		w.send(p, some("a", 5, 5)...)
		w.sendRaw(p, []byte("bad"))
		w.send(p, some("b", 5, 5)...)
	}
	r := w.worker(0, nil)
	w.workerOf(r.consumer, 1)
	eventually(t, "the other partition runs on", func() bool { return w.standings.at(1) == "11" })
	eventually(t, "it says why it waits", func() bool {
		l := r.line()
		return l.State == StateWaiting && strings.Contains(l.What, DeadLetterTopic(topic))
	})
	// What came before may be applied, if it was read by itself.
	require.NotContains(t, []string{"6", "11"}, w.standings.at(0))
	denied.Store(false)
	w.reaches(0, 1)
	for _, l := range w.deadLetters(0) { // it is there once more, from trying the topic
		require.Equal(t, "5", l["standings-offset"])
		require.Equal(t, "bad", l["value"])
	}
	eventually(t, "it runs", func() bool { return r.line().State == StateRunning })
}

func TestABatchWithDeadLettersThatFailedIsNeverSwept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var denied atomic.Bool
	denied.Store(true)
	w.refuse(func(int32, int) int16 {
		if denied.Load() {
			return codeUnauthorized
		}
		return 0
	})
	// More than is gathered, so that the write in the middle of the response fails.
	const n = 2 * gather / letterBytes
	var records []*kgo.Record
	for range n {
		records = append(records, &kgo.Record{Value: []byte("bad")})
	}
	require.NoError(t, w.client.ProduceSync(t.Context(), records...).FirstErr())
	r := w.worker(0, nil)
	eventually(t, "it halts", func() bool { return r.line().State == StateHalted })
	time.Sleep(1500 * time.Millisecond)
	require.Equal(t, "0", w.standings.at(0))
	require.Equal(t, HaltKafka, r.line().Reason)
	w.said(1, "partition halted")
	denied.Store(false)
	w.reaches(0)
	w.counted(n)
	offsets := map[string]bool{}
	for _, l := range w.deadLetters(0) {
		offsets[l["standings-offset"]] = true
	}
	require.Len(t, offsets, n)
	require.Equal(t, int64(n), w.stats.Dead(event.Malformed))
}

func incompressible(n int) []byte {
	b := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(b)
	return b
}

func TestADeadLetterThatIsTooLargeGoesWithoutItsValueAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.refuse(func(_ int32, size int) int16 {
		if size > 2000 {
			return codeTooLarge
		}
		return 0
	})
	w.sendRaw(0, []byte("small"), incompressible(4000), []byte("also small"))
	w.worker(0, func(c *Config) { c.FetchWait = 50 * time.Millisecond })
	w.reaches(0)
	letters := w.deadLetters(0)
	require.Len(t, letters, 3)
	for _, l := range letters {
		if l["standings-offset"] == "1" {
			require.Empty(t, l["value"])
			require.Contains(t, l["standings-message"], "without its value")
			require.Contains(t, l["standings-message"], "source offset")
			continue
		}
		require.Contains(t, l["value"], "small")
	}
	w.counted(3)
	require.Equal(t, int64(3), w.stats.Dead(event.Malformed))
}

func TestADeadLetterThatIsRefusedEvenWithoutItsValueHalts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.refuse(func(int32, int) int16 { return codeTooLarge })
	w.sendRaw(0, []byte("bad"))
	r := w.worker(0, nil)
	eventually(t, "it halts", func() bool { return r.line().State == StateHalted })
	require.Contains(t, r.line().Remedy, "max.message.bytes")
}

func TestAnOverflowWhoseDeadLettersCannotBeWrittenHoldsUpItsPartitionAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.standings.limit = 10
	var denied atomic.Bool
	denied.Store(true)
	w.refuse(func(partition int32, _ int) int16 {
		if denied.Load() && partition == 0 {
			return codeFewReplicas
		}
		return 0
	})
	for p := range 2 {
		w.sendRaw(p, []byte(`{"user_id":"rich","points":50}`))
	}
	r := w.worker(0, nil)
	eventually(t, "the first waits", func() bool { return r.line().State == StateWaiting })
	w.workerOf(r.consumer, 1)
	eventually(t, "the second goes on", func() bool { return w.standings.at(1) == "1" })
	require.Equal(t, "0", w.standings.at(0))
	denied.Store(false)
	eventually(t, "the first goes on", func() bool { return w.standings.at(0) == "1" })
	require.Equal(t, "overflow", w.deadLetters(0)[0]["standings-reason"])
	eventually(t, "both are counted", func() bool { return w.stats.Dead(event.Overflow) == 2 })
}

func TestAWriteOfDeadLettersEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.refuse(func(int32, int) int16 { return codeFewReplicas })
	w.sendRaw(0, []byte("bad"))
	r := w.worker(0, nil)
	eventually(t, "it waits", func() bool { return r.line().State == StateWaiting })
	began := time.Now()
	r.stop(t)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Equal(t, "0", w.standings.at(0))
}

func TestAfterAFailedWriteEveryFlushFails(t *testing.T) {
	t.Parallel()
	d := &deadLetters{failed: errLost, blocked: func(error) {}}
	require.ErrorIs(t, d.flush(t.Context()), errLost)
	d.forget()
	require.ErrorIs(t, d.flush(t.Context()), errLost)
}

// Neither is about the letter's size: nothing of it is left out.
func TestADeadLetterThatTheTopicIsNotMadeForHaltsAndNamesTheCause(t *testing.T) {
	t.Parallel()
	for code, remedy := range map[int16]string{32: "clock", 87: "cleanup.policy=delete"} {
		t.Run(remedy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			var denied atomic.Bool
			denied.Store(true)
			w.refuse(func(int32, int) int16 {
				if denied.Load() {
					return code
				}
				return 0
			})
			w.sendRaw(0, []byte("bad"))
			r := w.worker(0, nil)
			eventually(t, "it halts", func() bool { return r.line().State == StateHalted })
			require.Equal(t, HaltKafka, r.line().Reason)
			require.Contains(t, r.line().Remedy, remedy)
			denied.Store(false)
			w.reaches(0)
			for _, l := range w.deadLetters(0) {
				require.Equal(t, "bad", l["value"])
				require.NotContains(t, l["standings-message"], "without")
			}
		})
	}
}

func TestOfManyHeadersTheFirstAreCopiedAndTheOthersCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	many := &kgo.Record{Value: []byte("bad")}
	for range 50_000 {
		many.Headers = append(many.Headers, kgo.RecordHeader{})
	}
	large := &kgo.Record{Value: []byte("bad"), Headers: []kgo.RecordHeader{
		{Key: "small", Value: []byte("v")}, {Key: "large", Value: bytes.Repeat([]byte("x"), maxHeaderBytes)},
	}}
	require.NoError(t, w.client.ProduceSync(t.Context(), many, large).FirstErr())
	r := w.worker(0, nil)
	w.reaches(0)
	letters := w.deadLetters(0)
	require.Len(t, letters, 2)
	require.Equal(t, fmt.Sprint(50_000-maxHeaders), letters[0]["standings-headers-dropped"])
	require.Equal(t, "1", letters[1]["standings-headers-dropped"])
	require.Equal(t, "v", letters[1]["small"])
	require.NotContains(t, letters[1], "large")
	eventually(t, "memory is given back", func() bool { return r.memory.Used() == 0 })
}

// Records that are alike take a small part of their bytes on the wire, as they came.
func TestDeadLettersAreCompressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var wire, largest atomic.Int64
	w.refuse(func(_ int32, size int) int16 {
		wire.Add(int64(size))
		largest.Store(max(largest.Load(), int64(size)))
		return 0
	})
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var records []*kgo.Record
	for range 300 {
		records = append(records, &kgo.Record{Value: bytes.Repeat([]byte("x"), 40_000)})
	}
	require.NoError(t, c.ProduceSync(t.Context(), records...).FirstErr())
	w.worker(0, nil)
	w.reaches(0)
	w.counted(300)
	require.Len(t, w.deadLetters(0), 300)
	require.Less(t, wire.Load(), int64(300*40_000/50))
}

func TestADeadLetterTopicThatIsDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.send(2, some("a", 3, 5)...)
	r := w.worker(2, nil)
	w.reaches(2)
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.TopicNames = []string{DeadLetterTopic(topic)}
	name := kmsg.NewDeleteTopicsRequestTopic()
	name.Topic = &del.TopicNames[0]
	del.Topics = append(del.Topics, name)
	_, err := del.RequestWith(t.Context(), w.client)
	require.NoError(t, err)
	w.sendRaw(2, []byte("bad"))
	eventually(t, "it counts", func() bool { return w.standings.at(2) == "4" })
	require.NotEmpty(t, w.deadLetters(2))
	w.said(1, "the dead-letter topic is gone")
	found, err := r.kafka.metadata(t.Context(), DeadLetterTopic(topic))
	require.NoError(t, err)
	require.Equal(t, 3, found[DeadLetterTopic(topic)], "like its source")
}
