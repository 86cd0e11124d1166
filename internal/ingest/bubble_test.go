package ingest

// This file has a Kafka for tests in synctest bubbles: in-memory logs that are read through the Transport
// interface, so that all time is the bubble's and no connection is outside of it. It also has workers that read
// these logs, without a group and without locating their positions.

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/retry"
)

// logs holds a topic's partitions.
type logs struct {
	mu      sync.Mutex
	all     map[int32]*partitionLog
	fetches int
	// answer returns an error code for a fetch, or blocks it for a while; called without the lock.
	answer func(ctx context.Context, partition int32, offset int64) (code int16)
	// throttle returns how long a client is throttled, which then gets no records; nil: 0.
	throttle func(partition int32) time.Duration
	// produce handles writes to the dead-letter topic; nil: all writes succeed.
	produce func(m kafka.Request) (kafka.Response, error)
}

type partitionLog struct {
	batches []kmsg.RecordBatch
	end     int64
}

func newLogs() *logs { return &logs{all: map[int32]*partitionLog{}} }

// add appends a batch of values to a partition, compressed with one of Kafka's codecs.
func (l *logs) add(partition int32, codec int, values ...[]byte) {
	var raw []byte
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: int32(i), Value: v}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		raw = r.AppendTo(raw)
	}
	l.addRaw(partition, codec, len(values), compressed(codec, raw))
}

func compressed(codec int, raw []byte) []byte {
	if codec != 0 {
		var out bytes.Buffer
		w := compress.Codecs[codec].NewWriter(&out)
		if _, err := w.Write(raw); err != nil {
			panic(err)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		raw = out.Bytes()
	}
	return raw
}

// addRaw appends a batch of n records that are already compressed.
func (l *logs) addRaw(partition int32, codec, n int, raw []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.all[partition]
	if p == nil {
		p = &partitionLog{}
		l.all[partition] = p
	}
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		FirstOffset: p.end, Magic: 2, Attributes: int16(codec), LastOffsetDelta: int32(n - 1),
		FirstTimestamp: now, MaxTimestamp: now, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		NumRecords: int32(n), Records: raw, Length: int32(49 + len(raw)),
	}
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	p.batches = append(p.batches, b)
	p.end += int64(n)
}

// from returns the records that a broker would send from an offset on: at most most bytes, but at least a whole
// batch.
func (l *logs) from(partition int32, offset int64, most int32) (records []byte, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.all[partition]
	if p == nil {
		return nil, 0
	}
	for _, b := range p.batches {
		if b.FirstOffset+int64(b.LastOffsetDelta) < offset {
			continue
		}
		next := b.AppendTo(nil)
		if len(records) > 0 && len(records)+len(next) > int(most) {
			break
		}
		records = append(records, next...)
	}
	return records, p.end
}

func (l *logs) RoundTrip(ctx context.Context, _ net.Addr, m kafka.Request) (kafka.Response, error) {
	x, ok := m.(protocol.RawExchanger)
	if !ok {
		if l.produce == nil {
			return nil, errors.New("nobody answers that in this test")
		}
		return l.produce(m)
	}
	x.Required(map[protocol.ApiKey]int16{protocol.Fetch: 4})
	return x.RawExchange(&fetchCall{logs: l, ctx: ctx})
}

// fetchCall is one request and its answer, in the role of a connection.
type fetchCall struct {
	logs    *logs
	ctx     context.Context //nolint:containedctx // of the one call that it is
	request bytes.Buffer
	answer  *bytes.Reader
}

func (c *fetchCall) Write(b []byte) (int, error) { return c.request.Write(b) }

func (c *fetchCall) Read(b []byte) (int, error) {
	if c.answer == nil {
		if err := c.respond(); err != nil {
			return 0, err
		}
	}
	return c.answer.Read(b)
}

func (c *fetchCall) respond() error {
	head := c.request.Bytes()
	client := max(0, int(int16(binary.BigEndian.Uint16(head[12:]))))
	request := kmsg.FetchRequest{Version: 4}
	if err := request.ReadFrom(head[14+client:]); err != nil {
		return err
	}
	p := request.Topics[0].Partitions[0]
	c.logs.mu.Lock()
	c.logs.fetches++
	answer, throttle := c.logs.answer, c.logs.throttle
	c.logs.mu.Unlock()
	if throttle != nil {
		if d := throttle(p.Partition); d > 0 {
			c.send(head, &kmsg.FetchResponse{Version: 4, ThrottleMillis: int32(d.Milliseconds())})
			return nil
		}
	}
	out := kmsg.NewFetchResponseTopicPartition()
	out.Partition = p.Partition
	if answer != nil {
		out.ErrorCode = answer(c.ctx, p.Partition, p.FetchOffset)
	}
	if out.ErrorCode == 0 {
		for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
			out.RecordBatches, out.HighWatermark = c.logs.from(p.Partition, p.FetchOffset, p.PartitionMaxBytes)
			if len(out.RecordBatches) > 0 || waited >= time.Duration(request.MaxWaitMillis)*time.Millisecond {
				break
			}
			if err := retry.Sleep(c.ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
		out.LastStableOffset = out.HighWatermark
	}
	t := kmsg.NewFetchResponseTopic()
	t.Topic, t.Partitions = topic, []kmsg.FetchResponseTopicPartition{out}
	c.send(head, &kmsg.FetchResponse{Version: 4, Topics: []kmsg.FetchResponseTopic{t}})
	return nil
}

func (c *fetchCall) send(head []byte, response *kmsg.FetchResponse) {
	body := append(append([]byte{}, head[8:12]...), response.AppendTo(nil)...)
	c.answer = bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

var _ io.ReadWriter = (*fetchCall)(nil)

// bubble is a consumer's partitions without a group.
type bubble struct {
	t         *testing.T
	logs      *logs
	standings *fake
	consumer  *Consumer
	workers   []*worker
	want      int64 // events sent
}

func newBubble(t *testing.T, partitions int, change func(*Config)) *bubble {
	t.Helper()
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	b := &bubble{t: t, logs: newLogs(), standings: newFake()}
	cfg := Config{
		Kafka: Kafka{
			Brokers: []string{"none:1"}, Transport: b.logs, Topics: []string{topic}, Group: "group",
			FetchBytes: 1 << 20,
		},
		Timing: Timing{
			FetchWait: 500 * time.Millisecond, Timeout: 10 * time.Second,
			PieceTime: 5 * time.Millisecond,
		},
		Counting: Counting{
			Rules:  fold.BuiltIn(calendar, (400 * 24 * time.Hour).Milliseconds(), periods.Weekly, periods.Monthly),
			Events: event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 1 << 40, MaxFuture: 300_000},
		},
		Owner:      "me",
		FoldMemory: 32 << 20,
		Standings:  b.standings.standings(), Log: zap.NewNop(), Stats: new(counts.Stats),
	}
	if change != nil {
		change(&cfg)
	}
	b.consumer = New(cfg)
	for p := range partitions {
		b.standings.stands(field(p), "0")
		b.workers = append(b.workers, b.consumer.worker(topic, p, commits.New(nil, cfg.Log)))
	}
	return b
}

// run runs all workers until stop is called. stop verifies that all memory was released.
func (b *bubble) run() (stop func()) {
	ctx, cancel := context.WithCancelCause(b.t.Context())
	var all sync.WaitGroup
	for _, w := range b.workers {
		all.Go(func() {
			wait := retry.ForEver.Start()
			for ctx.Err() == nil {
				began := time.Now()
				err := w.ready(ctx)
				if err == nil {
					var at ledger.Positions
					if at, err = b.standings.positions(w.Number); err == nil {
						err = w.pipeline.run(ctx, at, replay.Endpoint{})
					}
				}
				if ctx.Err() != nil || !w.ended(ctx, err, wait, time.Since(began)) {
					return
				}
			}
		})
	}
	b.consumer.mu.Lock()
	b.consumer.workers = b.workers
	b.consumer.mu.Unlock()
	return func() {
		cancel(errGenerationEnded)
		all.Wait()
		require.Zero(b.t, b.consumer.Budget.Used(), "all memory is given back")
		addsUp(b.t, b.consumer.Stats)
	}
}

// send adds a batch of valid events to a partition.
func (b *bubble) send(partition int, all ...earned) {
	var values [][]byte
	for _, e := range all {
		v, err := json.Marshal(e)
		require.NoError(b.t, err)
		values = append(values, v)
	}
	b.logs.add(int32(partition), 0, values...)
	b.want += int64(len(all))
}

// counts waits, at most for within, until all events that were sent are applied.
func (b *bubble) counts(within time.Duration) {
	b.t.Helper()
	began := time.Now()
	for b.consumer.Stats.Count().Applied < b.want {
		if time.Since(began) > within {
			states := map[string]int{}
			for _, w := range b.workers {
				states[w.status.Line().State+" "+w.status.Line().Reason]++
			}
			b.t.Fatalf("after %v %d of %d events count; %d of %d bytes are used; %v",
				within, b.consumer.Stats.Count().Applied, b.want, b.consumer.Budget.Used(), b.consumer.Budget.Total(), states)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
