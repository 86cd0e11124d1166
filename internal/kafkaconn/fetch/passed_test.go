package fetch

// Responses whose first batch is larger than MaxBatch.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/test/testenv"
)

const maxBatch = 10_000

// batchOf returns a batch with the given size in bytes, the offsets 40 to 42 and the leader epoch 9.
func batchOf(size int, edit func(*kmsg.RecordBatch)) []byte {
	b := kmsg.RecordBatch{
		FirstOffset: 40, PartitionLeaderEpoch: 9, Magic: 2, LastOffsetDelta: 2, FirstTimestamp: 100, MaxTimestamp: 200,
		ProducerID: 7, NumRecords: 3, Records: bytes.Repeat([]byte("x"), size-61), Length: int32(size - 12),
	}
	if edit != nil {
		edit(&b)
	}
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

func answerOf(records []byte, aborted ...kmsg.FetchResponseTopicPartitionAbortedTransaction) []byte {
	return answer(11, 7, func(r *kmsg.FetchResponse) {
		p := &r.Topics[0].Partitions[0]
		p.RecordBatches, p.AbortedTransactions = records, aborted
	})
}

// firstOf reads the response's first record from offset 41 on.
func firstOf(t *testing.T, in []byte) (*recordbatch.Record, int64, error) {
	t.Helper()
	x, _, err := exchanged(11, in, maxBatch, 1<<20)
	if err != nil {
		return nil, 0, err
	}
	var r recordbatch.Reader
	x.response.Read(&r, 41)
	rec, err := r.Next()
	return rec, r.Position(), err
}

func TestABatchAboveTheLimitIsOneRecord(t *testing.T) {
	for _, size := range []int{maxBatch + 1, maxBatch + Beside, 10 * maxBatch, 1 << 20} {
		in := answerOf(append(batchOf(size, nil), "a batch that is cut off"...))
		rec, next, err := firstOf(t, in)
		if err != nil || rec.Whole == nil || rec.Value != nil {
			t.Fatalf("%d bytes: %+v: %v", size, rec, err)
		}
		want := recordbatch.Whole{Last: 42, First: 100, Count: 2, Codec: "none", Limit: maxBatch}
		if *rec.Whole != want || rec.Offset != 41 || rec.Time != 200 || rec.Oversize != int64(size) || next != 43 {
			t.Errorf("%d bytes: %+v, %+v, next %d", size, rec, *rec.Whole, next)
		}
	}
}

func TestABatchOfTheLimitIsReadAsSuch(t *testing.T) {
	rec, _, err := firstOf(t, answerOf(batchOf(maxBatch, nil)))
	if !errors.Is(err, recordbatch.ErrCorrupt) { // its records are invalid
		t.Fatalf("%+v: %v", rec, err)
	}
}

// The epoch of a skipped batch shows whether the log is the one that was read before.
func TestABatchThatIsPassedHasItsEpoch(t *testing.T) {
	x, _, err := exchanged(11, answerOf(batchOf(200_000, nil)), maxBatch, 1<<20)
	require.NoError(t, err)
	first, last, next, ok := x.response.Epochs()
	if first != 9 || last != 9 || next != 43 || !ok || x.response.Bytes() != 200_000 {
		t.Fatal(first, last, next, ok)
	}
}

func TestABatchThatIsPassedIsHeldAgainstItsSumToItsLastByte(t *testing.T) {
	for _, size := range []int{maxBatch + 1, 200_000} {
		batch := batchOf(size, nil)
		for _, at := range []int{17, 21, 26, 40, 61, maxBatch, size - 1} {
			bad := bytes.Clone(batch)
			bad[at] ^= 1
			if _, next, err := firstOf(t, answerOf(bad)); !errors.Is(err, recordbatch.ErrCorrupt) || next != 41 {
				t.Errorf("%d bytes, byte %d: next %d: %v", size, at, next, err)
			}
		}
	}
	for name, edit := range map[string]func(*kmsg.RecordBatch){
		"offsets": func(b *kmsg.RecordBatch) { b.LastOffsetDelta = -1 }, "count": func(b *kmsg.RecordBatch) { b.NumRecords = 4 },
		"control": func(b *kmsg.RecordBatch) { b.Attributes = 1 << 5 }, "magic": func(b *kmsg.RecordBatch) { b.Magic = 3 },
	} {
		if _, next, err := firstOf(t, answerOf(batchOf(200_000, edit))); !errors.Is(err, recordbatch.ErrCorrupt) || next != 41 {
			t.Errorf("%s: next %d: %v", name, next, err)
		}
	}
}

func TestAnAbortedBatchThatIsPassedIsNoRecord(t *testing.T) {
	in := answerOf(batchOf(200_000, func(b *kmsg.RecordBatch) { b.Attributes = 1 << 4 }),
		kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: 7, FirstOffset: 30})
	if rec, next, err := firstOf(t, in); !errors.Is(err, io.EOF) || next != 43 {
		t.Fatalf("%+v, next %d: %v", rec, next, err)
	}
}

func TestAMessageOfTheOldFormatThatIsPassedIsRefusedAsSuch(t *testing.T) {
	m := batchOf(200_000, func(b *kmsg.RecordBatch) { b.Magic = 1 })
	if _, _, err := firstOf(t, answerOf(m)); !errors.Is(err, recordbatch.ErrCorrupt) {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(m[18:], 1234)
	binary.BigEndian.PutUint32(m[12:], crc32.ChecksumIEEE(m[16:]))
	_, _, err := firstOf(t, answerOf(m))
	if old, ok := errors.AsType[*recordbatch.OldFormatError](err); !ok || old.Magic != 1 || old.Time != 1234 {
		t.Fatal(err)
	}
}

func TestAResponseThatIsLargeWithoutALargeBatchIsRefused(t *testing.T) {
	small := batchOf(maxBatch, nil)
	for name, in := range map[string][]byte{
		"batches":  answerOf(slices.Repeat(small, 20)),
		"aborted":  answerOf(small, make([]kmsg.FetchResponseTopicPartitionAbortedTransaction, 10_000)...),
		"no space": answerOf(batchOf(200_000, nil), make([]kmsg.FetchResponseTopicPartitionAbortedTransaction, (maxBatch+Beside)/16-8)...),
	} {
		size := new(SizeError)
		if _, _, err := firstOf(t, in); !errors.Is(err, ErrTooLarge) || !errors.As(err, &size) || size.Bytes != int64(len(in)-4) {
			t.Errorf("%s: %v", name, err)
		}
	}
	batch := batchOf(200_000, nil)
	if _, _, err := firstOf(t, answerOf(batch[:150_000])); !errors.Is(err, ErrMalformed) {
		t.Errorf("a first batch that is cut off: %v", err)
	}
	in := answerOf(batch)
	for _, n := range []int{maxBatch, maxBatch + Beside + 1, 150_000, len(in) - 1} {
		if _, _, err := firstOf(t, in[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a connection that ends after %d bytes: %v", n, err)
		}
	}
}

// A call that is abandoned while it skips a large batch ends at the next bytes, not at the last ones.
func TestACallThatIsGivenUpReadsNoFurther(t *testing.T) {
	in := answerOf(batchOf(1<<20, nil))
	x := newExchange()
	(&Fetcher{Topic: topic, MaxBatch: maxBatch, correlation: 7}).prepareFor(x)
	from := &counting{r: bytes.NewReader(in), at: maxBatch + Beside + 100, then: func() { x.endCall() }}
	if _, err := x.RawExchange(struct {
		io.Reader
		io.Writer
	}{from, io.Discard}); !errors.Is(err, errGivenUp) || from.n > 200_000 {
		t.Fatalf("%d bytes were read: %v", from.n, err)
	}
	if !x.isOver() {
		t.Fatal("it isn't over")
	}
}

func (f *Fetcher) prepareFor(x *exchange) {
	x.prepare(f, 41)
	x.version = newest
}

// counting calls then once a number of bytes were read.
type counting struct {
	r     io.Reader
	n, at int
	then  func()
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if c.n += n; c.n >= c.at && c.then != nil {
		c.then()
		c.then = nil
	}
	return n, err
}

func TestAResponseThatCameTooLateGetsTheTimeThatItsSizeNeeds(t *testing.T) {
	address := fake(t)
	produce(t, client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression())), string(bytes.Repeat([]byte("x"), 900_000)))
	f, g, _ := fetcher(t, address)
	f.MaxBatch = 50_000
	follow(t, f, 0)
	stuck := g.close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := f.Fetch(ctx, 0)
	<-stuck
	g.open()
	if !errors.Is(err, context.DeadlineExceeded) || f.large < 900_000 {
		t.Fatalf("%d: %v", f.large, err)
	}
	if _, next := follow(t, f, 0); next != 1 || f.large != 0 {
		t.Fatalf("next %d, %d", next, f.large)
	}
}

func TestARealBrokerSendsABatchFarAboveTheLimitAndWhatFollows(t *testing.T) {
	testenv.RealKafka(t, "a batch as brokers send it")
	const limit = 32 << 20
	k := testenv.PrivateKafka(t, map[string]string{"message.max.bytes": strconv.Itoa(2 * limit), "socket.request.max.bytes": strconv.Itoa(4 * limit)})
	topic := k.Topic(t, 1, nil)
	c := client(t, k.Addr(), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(limit),
		kgo.BrokerMaxWriteBytes(4*limit), kgo.ProducerLinger(time.Second), kgo.MaxBufferedRecords(1000))
	produce(t, c, "before")
	var large []*kgo.Record
	for range 10 {
		large = append(large, &kgo.Record{Value: bytes.Repeat([]byte("x"), 3<<20)})
	}
	require.NoError(t, c.ProduceSync(t.Context(), large...).FirstErr())
	produce(t, c, "after")
	f, _, m := fetcherOf(t, k.Addr(), topic)
	f.MaxBatch = 1 << 20
	if got, next := follow(t, f, 0); next != 12 || !slices.Equal(got, []string{"before", "", "after"}) {
		t.Fatalf("next %d: %.300q", next, got)
	}
	if m.most > 1<<20+Beside+small {
		t.Fatalf("%d bytes were held", m.most)
	}
}
