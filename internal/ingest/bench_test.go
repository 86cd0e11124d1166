package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// BenchmarkFetchToFold measures the cost of a record between a response and a batch: checksum, decompression,
// record, JSON, windows and the member's sum.
func BenchmarkFetchToFold(b *testing.B) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression()}
	for name, codec := range codecs {
		b.Run(name, func(b *testing.B) { fetchToFold(b, codec) })
	}
}

func fetchToFold(b *testing.B, codec kgo.CompressionCodec) { //nolint:thelper // it is the benchmark itself
	now := time.Now().UTC()
	response, records := published(b, codec, now)
	calendar, err := periods.NewCalendar("UTC", "monday")
	if err != nil {
		b.Fatal(err)
	}
	config := &Config{
		Counting: Counting{
			Rules:  fold.BuiltIn(calendar, 86_400_000, periods.Weekly, periods.Monthly, periods.Yearly),
			Events: event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000},
		},
		Stats: new(counts.Stats), Log: zap.NewNop(),
	}
	account := memory.New(256<<20, 64<<20).Account()
	r := folding(config, account)
	folded := &batch{Batch: fold.New(&config.Rules, account, 64<<20)}
	b.ReportAllocs()
	for b.Loop() {
		reset(folded.Batch, ledger.At(0))
		if at, err := r.fold(b.Context(), folded, response, 0, -1); err != nil || at != records {
			b.Fatal(at, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records), "ns/record")
	b.ReportMetric(float64(folded.Members()), "members")
}

// BenchmarkFetchToFoldWithDuplicates measures the same with duplicate detection, over a given number of earlier
// events.
func BenchmarkFetchToFoldWithDuplicates(b *testing.B) {
	for _, back := range []int64{100_000, 1_000_000} {
		b.Run(fmt.Sprint(back), func(b *testing.B) { fetchToFoldComparing(b, back) })
	}
}

func fetchToFoldComparing(b *testing.B, back int64) { //nolint:thelper // it is the benchmark itself
	now := time.Now().UTC()
	response, records := published(b, kgo.NoCompression(), now)
	calendar, err := periods.NewCalendar("UTC", "monday")
	if err != nil {
		b.Fatal(err)
	}
	config := &Config{
		Counting: Counting{
			Rules:  fold.BuiltIn(calendar, 86_400_000, periods.Weekly, periods.Monthly, periods.Yearly),
			Events: event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000},
		},
		Stats: new(counts.Stats), Log: zap.NewNop(),
	}
	account := memory.New(256<<20, 64<<20).Account()
	r := folding(config, account)
	r.known = &lookBack{records: back, set: duplicates.New(back)}
	r.known.set.Begin(0)
	var text [8]byte
	for o := range back { // fills the set
		binary.LittleEndian.PutUint64(text[:], uint64(o))
		r.known.set.Add(o, duplicates.Of(text[:], text[:]))
	}
	folded := &batch{Batch: fold.New(&config.Rules, account, 64<<20)}
	at, by := back, back
	b.ReportAllocs()
	b.ResetTimer()
	for loop := 0; b.Loop(); loop++ {
		b.StopTimer()
		moveOn(response.Records, by, loop)
		by = records
		b.StartTimer()
		reset(folded.Batch, ledger.At(at))
		end, err := r.fold(b.Context(), folded, response, at, -1)
		if err != nil || end != at+records {
			b.Fatal(end, err)
		}
		at = end
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records), "ns/record")
	b.ReportMetric(float64(folded.Duplicates)/float64(b.N), "duplicates")
}

// moveOn moves record batches to later offsets, and gives their events new ids.
func moveOn(batches []byte, by int64, loop int) {
	named := []byte(`{"event_id":"01JD`)
	for len(batches) >= 21 {
		size := min(len(batches), 12+int(binary.BigEndian.Uint32(batches[8:])))
		b := batches[:size]
		binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)+uint64(by))
		for rest := b; ; {
			i := bytes.Index(rest, named)
			if i < 0 {
				break
			}
			rest = rest[i+len(named):]
			copy(rest, fmt.Sprintf("%08d", loop))
		}
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
		batches = batches[size:]
	}
}

// folding returns a reader for a single response.
func folding(config *Config, account *memory.Account) *reader {
	return &reader{
		parsing: parsing{records: recordbatch.Reader{Memory: account}},
		passage: passage{decoder: event.NewDecoder(config.Events)},
		Handle:  &source.Handle{Field: "events/0", Log: zap.NewNop()}, turn: &source.Turn{},
		deadLetters: &deadletter.Writer{}, carried: &carried{}, stats: config.Stats,
	}
}

// published returns a response as a broker sends it, of about 1 MiB, and its number of records.
func published(b testing.TB, codec kgo.CompressionCodec, now time.Time) (*fetch.Response, int64) {
	b.Helper()
	const records = 8000
	broker, err := embedded.StartKafka(b.Context(), embedded.KafkaOptions{Topics: map[string]int{"points": 1}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(broker.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addresses()...), kgo.DefaultProduceTopic("points"),
		kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 1_000_000)
	var all []*kgo.Record
	for range records {
		all = append(all, &kgo.Record{Timestamp: now, Value: fmt.Appendf(nil,
			`{"event_id":"01JD%022d","board":"global","user_id":"player-%06d","points":%d,"occurred_at":%q}`,
			rand.Uint32(), zipf.Uint64(), 1+rand.IntN(100), now.Add(-time.Duration(rand.IntN(1000))*time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00"))})
	}
	if err := client.ProduceSync(b.Context(), all...).FirstErr(); err != nil {
		b.Fatal(err)
	}
	transport := &kafka.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	f := &fetch.Fetcher{Transport: transport, Addr: kafka.TCP(broker.Addresses()...), Topic: "points", MaxBytes: 64 << 20}
	response, err := f.Fetch(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	return response, records
}
