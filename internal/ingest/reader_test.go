package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// script answers every fetch as answers says; the zero answer is an empty response.
type script struct {
	asked   atomic.Int32
	answers func(n int) answer
}

// answer is a throttle without a topic, an error of the connection, or an empty response at the log's end.
type answer struct {
	throttle time.Duration
	err      error
}

// scripted returns a reader of partition 0 and the script that answers it.
func scripted(w *worker) (*reader, *script) {
	s := &script{answers: func(int) answer { return answer{} }}
	p := w.pipeline
	f := &fetch.Fetcher{Transport: s, Topic: topic, MaxWait: p.fetch.Wait}
	own := new(rulebook.Book) // if nothing is decoded
	if p.books != nil {
		own = p.books.Own
	}
	r := &reader{passage: passage{by: own, decoder: own.Decoder}, Handle: w.Handle, books: &rulebook.Books{Own: own}, remembers: new(lookBack), deadLetters: &deadletter.Writer{}, carried: p.carried, stats: w.stats}
	r.turn = &source.Turn{Field: w.Field, Budget: p.Budget, Fetcher: f, Waits: w.status.Reading, Holds: r.holds}
	r.source = p.source(f, r.turn, w.status.Reading, &r.carried.written)
	return r, s
}

func (s *script) RoundTrip(_ context.Context, _ net.Addr, m kafka.Request) (kafka.Response, error) {
	a := s.answers(int(s.asked.Add(1)) - 1)
	if a.err != nil {
		return nil, a.err
	}
	m.(interface {
		Required(map[protocol.ApiKey]int16) bool
	}).Required(map[protocol.ApiKey]int16{protocol.Fetch: 4}) // the version that the connection negotiated
	var request bytes.Buffer
	return m.(protocol.RawExchanger).RawExchange(struct {
		io.Writer
		io.Reader
	}{&request, &scriptAnswer{request: &request, answer: a}})
}

// scriptAnswer is a Fetch v4 response: a throttle or, without one, one topic with one partition and no records.
type scriptAnswer struct {
	answer

	request *bytes.Buffer
	body    *bytes.Reader
}

func (a *scriptAnswer) Read(p []byte) (int, error) {
	if a.body == nil {
		correlation := binary.BigEndian.Uint32(a.request.Bytes()[8:])
		r := kmsg.NewPtrFetchResponse()
		r.Version, r.ThrottleMillis = 4, int32(a.throttle.Milliseconds())
		if a.throttle == 0 {
			of, at := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
			at.HighWatermark, at.LastStableOffset = 10, 5
			of.Topic, of.Partitions = topic, append(of.Partitions, at)
			r.Topics = append(r.Topics, of)
		}
		b := r.AppendTo(binary.BigEndian.AppendUint32(nil, correlation))
		a.body = bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	return a.body.Read(p)
}

// Brokers do this if an open transaction ends the log.
func TestAnswersThatComeEmptyAtOnceAreNotAskedForAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := quiet()
		w.pipeline.fetch.Wait = 200 * time.Millisecond
		r, script := scripted(w)
		began := time.Now()
		for time.Since(began) < time.Second {
			resp, err := r.source.Fetch(t.Context(), 5)
			require.NoError(t, err)
			require.Empty(t, resp.Records)
			resp.Release()
		}
		require.Less(t, script.asked.Load(), int32(25))
		require.GreaterOrEqual(t, script.asked.Load(), int32(2), "and what is committed is seen soon")
	})
}

func TestARecordLargerThanMemoryAllowsIsMalformedAndGoesWithoutItsValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w.send(0, some("a", 3, 5)...)
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Key: []byte("k"), Value: []byte(strings.Repeat("x", 2<<20))}).FirstErr())
	w.send(0, some("b", 3, 5)...)
	w.worker(0, func(c *Config) { c.FoldMemory = 16 << 20 })
	w.reaches(0)
	deadLetters := w.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, "malformed", deadLetters[0]["standings-reason"])
	require.Equal(t, "3", deadLetters[0]["standings-offset"])
	require.Empty(t, deadLetters[0]["value"])
	require.Contains(t, deadLetters[0]["standings-message"], "source offset")
	w.counted(7)
	require.Equal(t, int64(1), w.stats.Dead(event.Malformed))
}

// For snappy in a single block, a codec holds the content, regardless of its limit.
func TestABatchThatTakesTooMuchToDecompressIsOneDeadLetterAndThePartitionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(time.Second),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(16<<20))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w.send(0, some("a", 3, 5)...)
	var large []*kgo.Record
	for range 12 {
		large = append(large, &kgo.Record{Value: bytes.Repeat([]byte("x"), 1<<20)})
	}
	require.NoError(t, c.ProduceSync(t.Context(), large...).FirstErr())
	w.send(0, some("b", 3, 5)...)
	w.worker(0, func(c *Config) { c.FoldMemory = 16 << 20 })
	w.reaches(0)
	deadLetters := w.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, "too_large", deadLetters[0]["standings-reason"])
	require.Equal(t, "3", deadLetters[0]["standings-offset"])
	require.Equal(t, "14", deadLetters[0][deadletter.HeaderLastOffset])
	require.Contains(t, deadLetters[0]["standings-message"], "the snappy record batch up to offset 14 takes 14")
	w.counted(18)
	require.Equal(t, int64(12), w.stats.Dead(event.TooLarge))
}

// sendLarge sends a batch of three records that doesn't fit in 8 MiB of fold_memory.
func (w *world) sendLarge() {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.config.Brokers...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20), kgo.ProducerLinger(time.Second))
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	var large []*kgo.Record
	for range 3 {
		large = append(large, &kgo.Record{Value: bytes.Repeat([]byte("x"), 267<<10)})
	}
	require.NoError(w.t, c.ProduceSync(w.t.Context(), large...).FirstErr())
}

func TestABatchThatIsLargerThanMemoryAllowsIsOneDeadLetterAndThePartitionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 3, 5)...)
	w.sendLarge()
	w.send(0, some("b", 3, 5)...)
	w.worker(0, func(c *Config) { c.FoldMemory = 8 << 20 })
	w.reaches(0)
	deadLetters := w.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, "too_large", deadLetters[0]["standings-reason"])
	require.Equal(t, "3", deadLetters[0]["standings-offset"])
	require.Equal(t, "5", deadLetters[0][deadletter.HeaderLastOffset])
	require.Contains(t, deadLetters[0]["standings-message"], "the record batch up to offset 5 has 820318 bytes, and fold_memory allows 524288")
	w.counted(9)
	require.Equal(t, int64(3), w.stats.Dead(event.TooLarge))
}

func TestALogMayBeginWithABatchThatIsLargerThanMemoryAllows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sendRaw(0, slices.Repeat([][]byte{[]byte("gone")}, 3)...)
	w.sendLarge()
	w.send(0, some("b", 3, 5)...)
	w.truncate(3) // so that its time is needed for the origin
	w.worker(0, func(c *Config) { c.FoldMemory, c.Start = 8<<20, start.Where{From: start.FromEarliest} })
	w.reaches(0)
	require.Len(t, w.deadLetters(), 1)
	require.Equal(t, int64(3), w.stats.Dead(event.TooLarge))
}

// counted is a context that ends after Err was called a number of times.
type counted struct {
	context.Context //nolint:containedctx // it is one

	looks int
}

var errCounted = errors.New("looked at often enough")

func (c *counted) Err() error {
	if c.looks--; c.looks < 0 {
		return errCounted
	}
	return nil
}

// A worker that loses its partition in the middle of a response stops there, however large the response is and
// however expensive its records are.
func TestAFoldStopsInTheMiddleOfAResponse(t *testing.T) {
	response, records := published(t, kgo.NoCompression(), time.Now())
	require.Greater(t, records, int64(4*lookAfter))
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	config := &Config{
		Counting: Counting{
			Rules:  fold.BuiltIn(calendar, 86_400_000, periods.Weekly),
			Events: event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000},
		},
		Stats: new(counts.Stats), Log: zap.NewNop(),
	}
	account := memory.New(256<<20, 64<<20).Account()
	r := folding(config, account)
	b := &batch{Batch: fold.New(&config.Rules, account, 64<<20)}
	reset(b.Batch, ledger.At(0))
	at, err := r.fold(&counted{t.Context(), 3}, b, response, 0, -1)
	require.Error(t, err)
	require.Equal(t, int64(3*lookAfter), at)
	require.Equal(t, int64(3*lookAfter), b.records, "what was folded is whole")
	// A rereading for refused members stops in the same way.
	o := &rereading{Handle: r.Handle, decoder: r.decoder, batch: b, deadLetters: r.deadLetters, written: &r.carried.written, records: recordbatch.Reader{Memory: account}}
	b.MoveTo(records)
	require.Error(t, o.response(&counted{t.Context(), 2}, response, 0))
	require.Equal(t, int64(2*lookAfter), o.records.Position())
}
