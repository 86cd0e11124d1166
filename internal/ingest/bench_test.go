package ingest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// BenchmarkFetchToFold is what a record costs between a response and a batch: the
// checksum, decompression, the record, its JSON, its windows and its member's sum.
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
		Rules:  fold.BuiltIn(calendar, 86_400_000, periods.Weekly, periods.Monthly, periods.Yearly),
		Events: event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000},
		Stats:  new(Stats), Log: zap.NewNop(),
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

// BenchmarkFetchToFoldWithDuplicates is the same, where each event is compared with so many
// before it.
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
		Rules:  fold.BuiltIn(calendar, 86_400_000, periods.Weekly, periods.Monthly, periods.Yearly),
		Events: event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 99_999_999, MaxFuture: 300_000},
		Stats:  new(Stats), Log: zap.NewNop(),
	}
	account := memory.New(256<<20, 64<<20).Account()
	r := folding(config, account)
	r.known = &lookBack{records: back, set: duplicates.New(back)}
	r.known.set.Begin(0)
	var text [8]byte
	for o := int64(0); o < back; o++ { // so that it is full
		binary.LittleEndian.PutUint64(text[:], uint64(o))
		r.known.set.Add(o, duplicates.Of(text[:], text[:]))
	}
	folded := &batch{Batch: fold.New(&config.Rules, account, 64<<20)}
	at := back
	shift(response.Records, at)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		reset(folded.Batch, ledger.At(at))
		end, err := r.fold(b.Context(), folded, response, at, -1)
		if err != nil || end != at+records {
			b.Fatal(end, err)
		}
		at = end
		shift(response.Records, records)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records), "ns/record")
	b.ReportMetric(float64(folded.duplicates)/float64(folded.duplicates+int64(folded.Members())), "duplicates/member")
}

// shift moves record batches to later offsets, of which their checksums know nothing.
func shift(batches []byte, by int64) {
	for len(batches) >= 12 {
		binary.BigEndian.PutUint64(batches, binary.BigEndian.Uint64(batches)+uint64(by))
		batches = batches[min(len(batches), 12+int(binary.BigEndian.Uint32(batches[8:]))):]
	}
}

// folding is a reader of one response.
func folding(config *Config, account *memory.Account) *reader {
	return &reader{
		partition: &partition{field: "events/0", log: zap.NewNop()}, records: recordbatch.Reader{Memory: account}, turn: &turn{},
		decoder: event.NewDecoder(config.Events), letters: &deadletter.Writer{}, written: &deadletter.Written{}, stats: config.Stats,
	}
}

// published are the bytes of a response as a broker gives them, about 1 MiB.
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
