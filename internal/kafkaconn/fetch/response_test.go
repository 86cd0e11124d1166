package fetch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// answer returns a response as franz-go encodes it, with its length.
func answer(version int16, correlation int32, edit func(*kmsg.FetchResponse)) []byte {
	p := kmsg.NewFetchResponseTopicPartition()
	p.HighWatermark, p.LastStableOffset, p.LogStartOffset = 30, 20, 10
	p.RecordBatches = []byte("records")
	tp := kmsg.NewFetchResponseTopic()
	tp.Topic, tp.Partitions = topic, []kmsg.FetchResponseTopicPartition{p}
	r := kmsg.NewPtrFetchResponse()
	r.Version, r.Topics = version, []kmsg.FetchResponseTopic{tp}
	if edit != nil {
		edit(r)
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(correlation))
	b = r.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// wire is a connection that already has the answer.
type wire struct{ io.Reader }

func (wire) Write(b []byte) (int, error) { return len(b), nil }

// exchanged runs one exchange that requests partition 0 as request 7.
func exchanged(version int16, in []byte, limit, memory int64) (*exchange, *budget, error) {
	m := &budget{limit: memory}
	f := &Fetcher{Topic: topic, Memory: m, MaxBatch: limit, correlation: 7}
	x := newExchange()
	x.prepare(f, 5)
	x.version = version
	_, err := x.RawExchange(wire{bytes.NewReader(in)})
	return x, m, err
}

func TestAResponseIsReadInEveryVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := int16(rapid.IntRange(oldest, newest).Draw(t, "version"))
		number := rapid.Int64()
		var want kmsg.FetchResponseTopicPartition
		in := answer(version, 7, func(r *kmsg.FetchResponse) {
			p := &r.Topics[0].Partitions[0]
			p.ErrorCode = rapid.Int16().Draw(t, "code")
			p.HighWatermark, p.LastStableOffset, p.LogStartOffset = number.Draw(t, "end"), number.Draw(t, "stable"), number.Draw(t, "start")
			p.PreferredReadReplica = rapid.Int32().Draw(t, "replica")
			for range rapid.IntRange(0, 100).Draw(t, "aborted") {
				a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
				a.ProducerID, a.FirstOffset = number.Draw(t, "producer"), number.Draw(t, "first")
				p.AbortedTransactions = append(p.AbortedTransactions, a)
			}
			p.RecordBatches = rapid.SliceOf(rapid.Byte()).Draw(t, "records")
			want = *p
		})
		x, m, err := exchanged(version, in, 1<<20, 1<<20)
		require.NoError(t, err)
		got := x.response
		if version < 5 {
			want.LogStartOffset = -1
		}
		code := kafka.Error(want.ErrorCode)
		if got.HighWatermark != want.HighWatermark || got.LastStable != want.LastStableOffset || got.LogStart != want.LogStartOffset ||
			(got.Err == nil) != (code == 0) || code != 0 && !errors.Is(got.Err, code) ||
			!bytes.Equal(got.Records, want.RecordBatches) || len(got.Aborted) != len(want.AbortedTransactions) {
			t.Fatalf("%+v, and should be %+v", got, want)
		}
		for i, a := range want.AbortedTransactions {
			if got.Aborted[i].Producer != a.ProducerID || got.Aborted[i].First != a.FirstOffset {
				t.Fatalf("%+v, and should be %+v", got.Aborted[i], a)
			}
		}
		x.drop()
		require.Zero(t, m.now(), "bytes are still held")
	})
}

func TestAThrottleIsBounded(t *testing.T) {
	for asked, want := range map[int32]time.Duration{-1: 0, math.MinInt32: 0, 0: 0, 1: time.Millisecond, 60_001: MaxThrottle, math.MaxInt32: MaxThrottle} {
		for _, topics := range []bool{true, false} {
			in := answer(11, 7, func(r *kmsg.FetchResponse) {
				if r.ThrottleMillis = asked; !topics {
					r.Topics = nil
				}
			})
			x, _, err := exchanged(11, in, 1<<20, 1<<20)
			if bad := !topics && want == 0; errors.Is(err, ErrMalformed) != bad || !bad && x.response.Throttled != want {
				t.Errorf("%d ms, with a topic %t: %v: %v", asked, topics, x.response.Throttled, err)
			}
		}
	}
}

func TestAResponseThatBreaksTheProtocolIsRefused(t *testing.T) {
	good := answer(11, 7, nil)
	patch := func(at int, b ...byte) []byte {
		in := bytes.Clone(good)
		copy(in[at:], b)
		return in
	}
	const topics = 4 + 4 + 4 + 2 + 4
	partitions := topics + 4 + 2 + len(topic)
	aborted := partitions + 4 + 4 + 2 + 3*8
	for name, in := range map[string][]byte{
		"negative length":       patch(0, 0xff, 0xff, 0xff, 0xff),
		"length of 3":           patch(0, 0, 0, 0, 3),
		"another request's":     answer(11, 8, nil),
		"another topic":         patch(topics+4+2, 'E'),
		"another partition":     patch(partitions+4, 0, 0, 0, 1),
		"no topic":              answer(11, 7, func(r *kmsg.FetchResponse) { r.Topics = nil }),
		"2^31 topics":           patch(topics, 0x7f, 0xff, 0xff, 0xff),
		"negative topic length": patch(topics+4, 0xff, 0xff),
		"no partition":          answer(11, 7, func(r *kmsg.FetchResponse) { r.Topics[0].Partitions = nil }),
		"2^31 partitions":       patch(partitions, 0x7f, 0xff, 0xff, 0xff),
		"2^31 aborted":          patch(aborted, 0x7f, 0xff, 0xff, 0xff),
		"records past the end":  patch(aborted+4+4, 0, 0, 0, 8),
		"bytes after the end":   patch(aborted+4+4, 0, 0, 0, 6),
		"bytes after no topic":  append([]byte{0, 0, 0, 19}, append(answer(11, 7, func(r *kmsg.FetchResponse) { r.ThrottleMillis, r.Topics = 9, nil })[4:], 0)...),
		"2^31 bytes of records": patch(aborted+4+4, 0x7f, 0xff, 0xff, 0xff),
	} {
		if _, _, err := exchanged(11, in, 1<<20, 1<<20); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range good {
		in := bytes.Clone(good[:n])
		if _, _, err := exchanged(11, in, 1<<20, 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("a connection that ends after %d bytes: %v", n, err)
		}
		if n >= 8 {
			binary.BigEndian.PutUint32(in, uint32(n-4))
			if _, _, err := exchanged(11, in, 1<<20, 1<<20); !errors.Is(err, ErrMalformed) {
				t.Errorf("a response of %d bytes: %v", n, err)
			}
		}
	}
}

func TestAbortedTransactionsBeyondAFewAreAskedFor(t *testing.T) {
	in := answer(11, 7, func(r *kmsg.FetchResponse) {
		r.Topics[0].Partitions[0].AbortedTransactions = make([]kmsg.FetchResponseTopicPartitionAbortedTransaction, 10_000)
	})
	x, m, err := exchanged(11, in, 1<<20, 1<<20)
	if err != nil || len(x.response.Aborted) != 10_000 || m.now() < 2*160_000 {
		t.Fatalf("%d aborted, %d bytes held: %v", len(x.response.Aborted), m.now(), err)
	}
	x, m, err = exchanged(11, in, 1<<20, 200_000)
	if err != nil || !errors.Is(x.refused, ErrNoMemory) || m.now() == 0 {
		t.Fatalf("%v: %v", x.refused, err)
	}
	x.drop()
	require.Zero(t, m.now(), "bytes are still held")
}

func TestABufferFitsWhatItIsUsedFor(t *testing.T) {
	m := &budget{limit: 1 << 30}
	x := newExchange()
	x.memory = m
	for _, c := range []struct{ size, least, most, held int }{
		{100, 100, inline, 0}, {inline + 1, small, small, small}, {1 << 20, 1 << 20, 1 << 20, 1 << 20},
		{1<<20 - 1, 1 << 20, 1 << 20, 1 << 20}, {300_000, 1 << 20, 1 << 20, 1 << 20},
		{200_000, 200_000, 210_000, 204_800}, {10, 10, inline, 0}, {small, small, small, small}, {100, small, small, small},
	} {
		if !x.room(c.size) || len(x.buf) < c.least || len(x.buf) > c.most || m.now() != int64(c.held) {
			t.Fatalf("for %d bytes: %d of %d, %d held", c.size, len(x.buf), cap(x.buf), m.now())
		}
	}
}

func TestWithoutMemoryAVeryLargeResponseCostsTheConnection(t *testing.T) {
	in := binary.BigEndian.AppendUint32(nil, discarded+1)
	if _, _, err := exchanged(11, in, 1<<30, 1000); !errors.Is(err, ErrNoMemory) {
		t.Fatal(err)
	}
}

// For any input there is no panic, no more memory is allocated than reserved, and an accepted response
// equals franz-go's reading.
func FuzzResponse(f *testing.F) {
	for version := int16(oldest); version <= newest; version++ {
		for _, edit := range []func(*kmsg.FetchResponse){
			nil,
			func(r *kmsg.FetchResponse) { r.ErrorCode, r.Topics = 29, nil },
			func(r *kmsg.FetchResponse) { r.ThrottleMillis, r.Topics = 9000, nil },
			func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].ErrorCode = 1 },
			func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].RecordBatches = nil },
			func(r *kmsg.FetchResponse) {
				r.Topics[0].Partitions[0].AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 1, FirstOffset: 2}}
			},
		} {
			f.Add(version, answer(version, 7, edit))
		}
	}
	f.Fuzz(func(t *testing.T, version int16, in []byte) {
		if version < oldest || version > newest {
			return
		}
		const limit = 1 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, m, err := exchanged(version, in, limit, 2*limit)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(m.most)+256<<10 {
			t.Fatalf("%d bytes allocated, %d asked for", n, m.most)
		}
		if err == nil && x.refused == nil {
			agree(t, version, in, &x.response)
		}
		x.drop()
		require.Zero(t, m.now(), "bytes are still held")
	})
}

func agree(t *testing.T, version int16, in []byte, got *Response) {
	t.Helper()
	if version >= 7 { // what follows an error of the whole request is not read
		if code := int16(binary.BigEndian.Uint16(in[12:])); code != 0 {
			if !errors.Is(got.Err, kafka.Error(code)) {
				t.Fatalf("%v, and should be %d", got.Err, code)
			}
			return
		}
	}
	want := kmsg.NewPtrFetchResponse()
	want.Version = version
	if err := want.ReadFrom(in[8 : 4+binary.BigEndian.Uint32(in)]); err != nil {
		t.Fatalf("franz-go can't read it: %v", err)
	}
	if throttled := time.Duration(want.ThrottleMillis) * time.Millisecond; got.Throttled != min(max(throttled, 0), MaxThrottle) {
		t.Fatalf("throttled for %v, and should be %v", got.Throttled, throttled)
	}
	if len(want.Topics) == 0 && want.ThrottleMillis > 0 {
		if got.Answered() || got.HighWatermark != -1 || got.LastStable != -1 || got.LogStart != -1 || len(got.Records)+len(got.Aborted) > 0 {
			t.Fatalf("%+v, and nothing was answered", got)
		}
		return
	}
	p := want.Topics[0].Partitions[0]
	if passed := got.passed; passed != nil {
		if got.Bytes() <= 1<<20 {
			t.Fatalf("a batch of %d bytes was passed", got.Bytes())
		}
		p.RecordBatches = recordbatch.Header(p.RecordBatches)
	}
	if got.HighWatermark != p.HighWatermark || got.LastStable != p.LastStableOffset || got.LogStart != p.LogStartOffset ||
		!bytes.Equal(got.Records, p.RecordBatches) || len(got.Aborted) != len(p.AbortedTransactions) {
		t.Fatalf("%+v, and should be %+v", got, p)
	}
}

func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			in := answer(11, 7, func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].RecordBatches = make([]byte, size) })
			f := &Fetcher{Topic: topic, Memory: &budget{limit: 1 << 40}, correlation: 7}
			x := newExchange()
			x.version = newest
			w := bytes.NewReader(in)
			rw := wire{w}
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(in)
				x.prepare(f, 5)
				if _, err := x.RawExchange(rw); err != nil {
					b.Fatal(err)
				}
				x.release()
			}
		})
	}
}
