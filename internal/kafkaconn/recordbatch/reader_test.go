package recordbatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var codecs = []int16{0, 1, 2, 3, 4}

func TestEveryCodecGivesTheRecordsThatWereWritten(t *testing.T) {
	for _, codec := range codecs {
		s := plain(100, 3000, codec)
		in := s.encode()
		got, next, err := read(t, in, 0)
		if err != nil || next != 3100 {
			t.Fatalf("%s: next is %d: %v", codecNames[codec], next, err)
		}
		same(t, got, s.records)
		want, _, err := franz(in, 0)
		require.NoError(t, err)
		same(t, got, want)
	}
}

func TestAnEmptyBatchIsGonePast(t *testing.T) {
	for _, codec := range codecs {
		got, next, err := read(t, spec{base: 7, last: 19, attrs: codec}.encode(), 9)
		if err != nil || len(got) != 0 || next != 20 {
			t.Fatalf("%d records, next %d: %v", len(got), next, err)
		}
	}
}

func TestATimeThatOverflowsWrapsAsForEveryOtherConsumer(t *testing.T) {
	s := spec{time: math.MaxInt64, records: []record{{time: math.MinInt64 + 4}}}
	got, _, err := read(t, s.encode(), 0)
	if err != nil || got[0].time != math.MinInt64+4 {
		t.Fatalf("%+v: %v", got, err)
	}
}

func TestARecordHeavyWithHeadersShowsThemAll(t *testing.T) {
	for _, codec := range codecs {
		s := plain(0, 1, codec)
		for i := range 5000 {
			s.records[0].headers = append(s.records[0].headers, header{strings.Repeat("h", i%40), bytes.Repeat([]byte{1}, i%50)})
		}
		got, _, err := read(t, s.encode(), 0)
		require.NoError(t, err)
		same(t, got, s.records)
	}
}

func TestALastBatchThatIsCutOffIsLeftForTheNextFetch(t *testing.T) {
	first := plain(0, 5, 0).encode()
	all := append(bytes.Clone(first), plain(5, 5, 4).encode()...)
	for n := len(first); n < len(all); n++ {
		got, next, err := read(t, all[:n], 0)
		if err != nil || next != 5 || len(got) != 5 {
			t.Fatalf("cut at %d: %d records, next %d: %v", n, len(got), next, err)
		}
	}
	for n := 1; n < len(first); n++ {
		if _, next, err := read(t, all[:n], 3); !errors.Is(err, ErrTruncated) || next != 3 {
			t.Fatalf("cut at %d, in the first batch: next %d: %v", n, next, err)
		}
	}
	if _, next, err := read(t, nil, 3); err != nil || next != 3 {
		t.Fatalf("nothing: next %d: %v", next, err)
	}
}

// The CRC covers every byte after it. The bytes before it are the base offset, the length, the leader's
// epoch and the magic. With another magic the batch has another format, with a checksum of its own.
func TestAFlippedBitIsSeen(t *testing.T) {
	clean := plain(0, 4, 0).encode()
	for i := 8 * magicAt; i < 8*len(clean); i++ {
		in := bytes.Clone(clean)
		in[i/8] ^= 1 << (i % 8)
		if _, next, err := read(t, in, 0); !errors.Is(err, ErrCorrupt) || next != 0 {
			t.Fatalf("bit %d: next %d: %v", i, next, err)
		}
	}
}

func TestABatchThatBreaksTheFormatIsRefused(t *testing.T) {
	bare := func(b ...byte) []byte { return spec{payload: b, count: 1}.encode() }
	patch := func(at int, b ...byte) []byte {
		in := plain(0, 3, 0).encode()
		copy(in[at:], b)
		return seal(in)
	}
	max5 := []byte{0xfe, 0xff, 0xff, 0xff, 0x0f}
	for name, in := range map[string][]byte{
		"negative base":            patch(0, 0x80),
		"offsets overflow":         patch(0, 0x7f, 255, 255, 255, 255, 255, 255, 255),
		"length too small":         patch(8, 0, 0, 0, 48),
		"negative length":          patch(8, 0x80),
		"magic 3":                  patch(16, 3),
		"negative last delta":      patch(23, 0x80),
		"negative count":           patch(57, 0x80),
		"more records than there":  patch(57, 0, 0, 0, 4),
		"2^31 records":             patch(57, 0x7f, 255, 255, 255),
		"fewer records than there": patch(57, 0, 0, 0, 2),
		"codec 5":                  patch(22, 5),
		"length of 2 GiB":          bare(append(max5, make([]byte, 20)...)...),
		"negative record length":   bare(1, 0, 0, 0, 0, 0, 0, 0),
		"varint of six bytes":      bare(0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0, 0),
		"varint above 32 bits":     bare(0x80, 0x80, 0x80, 0x80, 0x7f, 0x00, 0, 0),
		"empty record":             bare(0, 0, 0, 0, 0, 0, 0),
		"time of eleven bytes":     bare(30, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 1, 1, 0),
		"offset past the last":     bare(12, 0, 0, 2, 1, 1, 0),
		"negative offset delta":    bare(12, 0, 0, 1, 1, 1, 0),
		"key past the record":      bare(12, 0, 0, 0, 100, 1, 0),
		"value past the record":    bare(12, 0, 0, 0, 1, 100, 0),
		"2^31 headers":             bare(append([]byte{20, 0, 0, 0, 1, 1}, max5[:]...)...),
		"negative headers":         bare(12, 0, 0, 0, 1, 1, 1),
		"header with a null key":   bare(16, 0, 0, 0, 1, 1, 2, 1, 1),
		"bytes after the headers":  bare(14, 0, 0, 0, 1, 1, 0, 0),
		"bytes after the record":   bare(12, 0, 0, 0, 1, 1, 0, 0),
		"short control key":        spec{attrs: attrControl, records: []record{{key: []byte{0, 0, 0}}}}.encode(),
	} {
		_, next, err := read(t, in, 0)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: next %d: %v", name, next, err)
		}
	}
}

// The error comes before the last record is returned. Otherwise a reader that retries would continue after
// the batch, and a reader that must read everything without errors never could.
func TestWhatFollowsTheLastRecordIsFoundBeforeThatIsReturned(t *testing.T) {
	for _, codec := range codecs {
		s := plain(0, 3, codec)
		if s.payload = append(raw(s), 0); codec != 0 {
			s.payload = squeeze(int(codec), s.payload)
		}
		for _, from := range []int64{0, 2} {
			if _, next, err := read(t, s.encode(), from); !errors.Is(err, ErrCorrupt) || next != 2 {
				t.Errorf("%s from %d: next %d: %v", codecNames[codec], from, next, err)
			}
		}
	}
}

// The batch's CRC covers its bytes, and Kafka's own consumer does not check LZ4's checksum of the content.
// If one reader counts records that another refuses, they never agree again.
func TestAWrongSumBehindTheLastRecordChangesNothing(t *testing.T) {
	for name, codec := range map[string]int16{"gzip": 1, "lz4": 3} { // snappy has none
		s := plain(0, 3, codec)
		s.payload = squeeze(int(codec), raw(s))
		s.payload[len(s.payload)-1] ^= 1 // for gzip it is the size
		in := append(s.encode(), plain(3, 2, 0).encode()...)
		if got, next, err := read(t, in, 0); err != nil || len(got) != 5 || next != 5 {
			t.Errorf("%s: %d records, next %d: %v", name, len(got), next, err)
		}
	}
	// zstd returns nothing of the block. No broker accepts such a batch.
	s := plain(0, 3, 4)
	s.payload = squeeze(4, raw(s))
	s.payload[len(s.payload)-1] ^= 1
	if got, next, err := read(t, s.encode(), 0); !errors.Is(err, ErrCorrupt) || next != 0 {
		t.Errorf("zstd: %d records, next %d: %v", len(got), next, err)
	}
}

// io.EOF means the end of the response. Inside a batch the end of a codec's data is an error.
func TestDamageInsideACodecIsNeverTakenForTheEndOfTheResponse(t *testing.T) {
	for name, e := range encoders {
		s := plain(0, 3, e.codec)
		whole := e.encode(raw(s))
		holds := func(what string, at int, payload []byte) {
			t.Helper()
			s.payload = payload
			r := Reader{MaxCodec: 1 << 20} // larger batches take longer and behave the same
			r.Reset(s.encode(), 0, nil)
			defer r.Close()
			if got, err := readAll(t, &r); err == nil && len(got) != 3 && (len(got) != 1 || !got[0].whole) {
				t.Errorf("%s, %s at %d: %d records, and no error", name, what, at, len(got))
			}
		}
		for at := range whole {
			holds("cut", at, whole[:at])
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << (at % 8)
			holds("flipped", at, flipped)
		}
	}
}

func TestOffsetsThatGoBackAreRefused(t *testing.T) {
	if _, next, err := read(t, join(plain(10, 5, 0), plain(14, 5, 0)), 0); !errors.Is(err, ErrCorrupt) || next != 15 {
		t.Fatalf("batches: next %d: %v", next, err)
	}
	s := plain(10, 3, 0)
	s.last, s.records[2].offset = 12, 11
	if _, next, err := read(t, s.encode(), 0); !errors.Is(err, ErrCorrupt) || next != 12 {
		t.Fatalf("records: next %d: %v", next, err)
	}
}

func TestARecordAboveTheLimitIsGoneOverAndReported(t *testing.T) {
	for _, codec := range codecs {
		s := plain(0, 3, codec)
		s.records[1].value = bytes.Repeat([]byte("0123456789"), 500_000)
		r := Reader{MaxRecord: 1000}
		r.Reset(s.encode(), 0, nil)
		var sizes []int64
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			sizes = append(sizes, rec.Oversize)
			if rec.Oversize > 0 && (rec.Key != nil || rec.Value != nil || rec.Offset != 1 || rec.Time != 1_000_001) {
				t.Fatalf("%+v", rec)
			}
		}
		if len(sizes) != 3 || sizes[0] != 0 || sizes[1] < 5_000_000 || sizes[1] > 5_000_050 || sizes[2] != 0 || r.Position() != 3 {
			t.Fatalf("%s: %v, next %d, %v", codecNames[codec], sizes, r.Position(), r.err)
		}
		r.Close()
	}
}

// genSpecs draws ascending batches: committed, aborted and open transactions of several interleaved
// producers, gaps, empty and control batches, all codecs. Like a broker, it omits batches and transactions
// that end before an offset: franz-go ignores markers there.
func genSpecs(t *rapid.T, from int64) (specs []spec, aborted []Aborted) {
	next := rapid.Int64Range(0, 1000).Draw(t, "first")
	began := map[int64]int64{}
	for range rapid.IntRange(0, 20).Draw(t, "batches") {
		next += rapid.Int64Range(0, 3).Draw(t, "gap")
		producer := rapid.Int64Range(1, 3).Draw(t, "producer")
		if first, ok := began[producer]; ok && rapid.Bool().Draw(t, "end") {
			kind := rapid.SampledFrom([]byte{abort, commit}).Draw(t, "kind")
			if kind == abort && next >= from {
				aborted = append(aborted, Aborted{producer, first})
			}
			delete(began, producer)
			specs = append(specs, marker(next, producer, kind))
			next++
			continue
		}
		s := genBatch(t, next, producer)
		if s.attrs&attrTransactional != 0 {
			if _, ok := began[producer]; !ok {
				began[producer] = next
			}
		}
		specs = append(specs, s)
		next = s.last + 1
	}
	specs = slices.DeleteFunc(specs, func(s spec) bool { return max(s.base, s.last) < from })
	for p, first := range began { // open at the end: aborted later in the log
		aborted = append(aborted, Aborted{p, first})
	}
	return specs, rapid.Permutation(aborted).Draw(t, "aborted")
}

func genBatch(t *rapid.T, base, producer int64) spec {
	s := spec{base: base, time: rapid.Int64Range(-1, 1<<42).Draw(t, "time"), maxTime: 1 << 43, producer: -1}
	s.attrs = rapid.SampledFrom(codecs).Draw(t, "codec")
	if rapid.Bool().Draw(t, "transactional") {
		s.attrs, s.producer = s.attrs|attrTransactional, producer
	}
	if rapid.Bool().Draw(t, "append time") {
		s.attrs |= attrLogAppendTime
	}
	bytesOrNil := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 200))
	offset := base
	for range rapid.IntRange(0, 20).Draw(t, "records") {
		offset += rapid.Int64Range(0, 2).Draw(t, "skip")
		r := record{offset: offset, time: s.time + rapid.Int64Range(-5000, 5000).Draw(t, "delta"),
			key: bytesOrNil.Draw(t, "key"), value: bytesOrNil.Draw(t, "value")}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.headers = append(r.headers, header{rapid.String().Draw(t, "name"), bytesOrNil.Draw(t, "header")})
		}
		s.records = append(s.records, r)
		offset++
	}
	if len(s.records) == 0 { // Kafka leaves empty batches uncompressed
		s.attrs &^= attrCodec
	}
	s.last = max(base, offset-1) + rapid.Int64Range(0, 3).Draw(t, "compacted")
	return s
}

func TestWhateverIsWellFormedReadsAsFranzGoReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1020).Draw(t, "from")
		specs, aborted := genSpecs(t, from)
		in := join(specs...)
		want, next, err := franz(in, from, aborted...)
		require.NoError(t, err)
		got, at, err := read(t, in, from, aborted...)
		if err != nil || at != next {
			t.Fatalf("next is %d, and should be %d: %v", at, next, err)
		}
		same(t, got, want)
	})
}

func TestThePositionIsAlwaysWhereAnotherFetchCanGoOn(t *testing.T) {
	specs := []spec{plain(3, 4, 1), marker(7, 2, commit), plain(9, 6, 2), {base: 15, last: 18}, plain(20, 3, 0)}
	in := join(specs...)
	whole, _, err := read(t, in, 0)
	require.NoError(t, err)
	for stop := range whole {
		var r Reader
		r.Reset(in, 0, nil)
		for range stop {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		at := r.Position()
		r.Close()
		if r.Position() != at {
			t.Fatalf("closing moved the position from %d to %d", at, r.Position())
		}
		rest, _, err := read(t, in, at)
		require.NoError(t, err)
		same(t, rest, whole[stop:])
	}
}

func TestVarintsOfTheFullRangeAreRead(t *testing.T) {
	for _, n := range []int64{0, -1, 1, 63, -64, 64, 1 << 20, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		b := binary.AppendVarint(nil, n)
		if got, p := varint64(b, 0); got != n || p != len(b) {
			t.Errorf("%d is read as %d, to %d", n, got, p)
		}
		got, p := varint32(b, 0)
		if fits := n == int64(int32(n)); fits && (int64(got) != n || p != len(b)) || !fits && p >= 0 {
			t.Errorf("%d is read in 32 bits as %d, to %d", n, got, p)
		}
	}
}
