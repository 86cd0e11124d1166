package recordbatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

// budget is a Memory of a fixed size that records the most bytes reserved at once.
type budget struct{ limit, held, most int64 }

func (b *budget) Take(n int64) bool {
	if n < 0 || b.held+n > b.limit {
		return false
	}
	b.held += n
	b.most = max(b.most, b.held)
	return true
}

func (b *budget) Release(n int64) {
	if b.held -= n; n < 0 || b.held < 0 {
		panic("more released than taken")
	}
}

// sample returns about n bytes that compress like events, in records of the given size.
func sample(n, size int, attrs int16) spec {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := spec{producer: -1, attrs: attrs}
	for i := range n / size {
		v := bytes.Repeat([]byte(`{"points":25}`), size/13)
		for j := 0; j < len(v); j += 40 {
			v[j] = byte(rnd.Uint32())
		}
		s.records = append(s.records, record{offset: int64(i), value: v})
	}
	return s
}

func raw(s spec) (out []byte) {
	for _, r := range s.records {
		out = s.appendRecord(out, r)
	}
	return out
}

// encoders are the ways in which clients use each codec, including those with the largest buffers.
var encoders = map[string]struct {
	codec  int16
	encode func([]byte) []byte
}{
	"gzip": {1, func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Extra = make([]byte, min(65535, 8*len(b)))
		return written(&out, w, b)
	}},
	"snappy, framed":         {2, func(b []byte) []byte { return squeeze(2, b) }},
	"snappy, one block":      {2, func(b []byte) []byte { return s2.EncodeSnappy(nil, b) }},
	"lz4, 64 KiB":            {3, lz4Encoder(lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true))},
	"lz4, 4 MiB":             {3, lz4Encoder(lz4.BlockSizeOption(lz4.Block4Mb), lz4.ChecksumOption(false))},
	"zstd, stream":           {4, func(b []byte) []byte { return squeeze(4, b) }},
	"zstd, 16 MiB":           {4, zstdEncoder(zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(16<<20))},
	"zstd, 128 MiB declared": {4, declares128MiB},
	"zstd, small":            {4, zstdEncoder(zstd.WithWindowSize(1<<10), zstd.WithEncoderCRC(false))},
	"zstd, one segment": {4, func(b []byte) []byte {
		e, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
		if err != nil {
			panic(err)
		}
		return e.EncodeAll(b, nil)
	}},
}

// declares128MiB returns a frame with the window that Kafka's own clients declare at level 22.
func declares128MiB(b []byte) []byte {
	out := zstdEncoder(zstd.WithSingleSegment(false))(b)
	out[descriptorAt] = (27 - 10) << 3
	return out
}

func lz4Encoder(options ...lz4.Option) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(options...); err != nil {
			panic(err)
		}
		return written(&out, w, b)
	}
}

func zstdEncoder(options ...zstd.EOption) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, options...)
		if err != nil {
			panic(err)
		}
		return written(&out, w, b)
	}
}

// The memory allocated while a batch is read, including garbage, is an upper bound of the memory in use.
// Unframed snappy grows its input by doubling; the test allows for that garbage.
func TestACodecHoldsNoMoreThanIsAskedFor(t *testing.T) {
	for name, e := range encoders {
		s := sample(5<<20, 1000, e.codec)
		s.payload = e.encode(raw(s))
		in := s.encode()
		runtime.GC() // empties kafka-go's pools,
		runtime.GC() // for good
		m := budget{limit: 1 << 40}
		r := Reader{Memory: &m, MaxCodec: 64 << 20}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.Reset(in, 0, nil)
		n := 0
		for {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n++
		}
		runtime.ReadMemStats(&after)
		allocated := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%-18s %8d bytes allocated, %8d asked for, %8d compressed", name, allocated, m.most, len(s.payload))
		if garbage := int64(2 * len(s.payload)); n != len(s.records) || allocated > m.most+garbage {
			t.Errorf("%s: %d records of %d, %d bytes allocated, %d asked for", name, n, len(s.records), allocated, m.most)
		}
		if r.Close(); m.held != 0 {
			t.Errorf("%s: %d bytes are still held", name, m.held)
		}
	}
}

func TestABatchThatExpandsAHundredfoldCostsTheWindow(t *testing.T) {
	for _, codec := range []int16{1, 4} {
		s := spec{attrs: codec, producer: -1}
		for i := range 64 {
			s.records = append(s.records, record{offset: int64(i), value: make([]byte, 1<<20)})
		}
		in := s.encode()
		if len(in)*100 > 64<<20 {
			t.Fatalf("%d bytes is not a hundredth", len(in))
		}
		m := budget{limit: 16 << 20}
		r := Reader{Memory: &m}
		r.Reset(in, 0, nil)
		if all, err := readAll(t, &r); err != nil || len(all) != 64 {
			t.Fatalf("%d records: %v", len(all), err)
		}
		if r.Close(); m.held != 0 {
			t.Fatalf("%d bytes are still held", m.held)
		}
	}
}

func TestZstdCostsWhatItsContentNeedsAndNotTheWindowThatItDeclares(t *testing.T) {
	for bytes, most := range map[int]int64{1_000: 1 << 20, 5 << 20: 10 << 20} {
		s := sample(bytes, 1000, 4)
		s.payload = declares128MiB(raw(s))
		m := budget{limit: 1 << 40}
		r := Reader{Memory: &m}
		r.Reset(s.encode(), 0, nil)
		got, err := readAll(t, &r)
		require.NoError(t, err)
		same(t, got, s.records)
		if m.most > most {
			t.Errorf("%d bytes of content: %d taken", bytes, m.most)
		}
		r.Close()
	}
}

// The records after it are read.
func TestOneRecordStandsForABatchThatTakesTooMuchToDecompress(t *testing.T) {
	large := sample(4<<20, 1000, 2)
	large.payload, large.base, large.maxTime = s2.EncodeSnappy(nil, raw(large)), 0, 77
	last := int64(len(large.records)) - 1
	aborted := large
	aborted.attrs, aborted.producer = aborted.attrs|attrTransactional, 7
	after := plain(last+1, 2, 4)
	for _, from := range []int64{0, 10} {
		m := budget{limit: 1 << 40}
		r := Reader{Memory: &m, MaxCodec: 1 << 20}
		r.Reset(join(large, after), from, nil)
		rec, err := r.Next()
		require.NoError(t, err)
		if w := rec.Whole; w == nil || rec.Offset != from || rec.Time != 77 || rec.Oversize < 4<<20 || rec.Value != nil ||
			w.Last != last || w.Count != last-from+1 || w.Codec != "snappy" || w.Limit != 1<<20 || r.Position() != last+1 {
			t.Fatalf("from %d: %+v, %+v, next %d", from, rec, rec.Whole, r.Position())
		}
		rest, err := readAll(t, &r)
		require.NoError(t, err)
		same(t, rest, after.records)
		if r.Close(); m.held != 0 || m.most > 2<<20 {
			t.Errorf("%d bytes held, %d taken", m.held, m.most)
		}
		r.Reset(join(aborted, after), from, []Aborted{{7, 0}})
		if rest, err = readAll(t, &r); err != nil {
			t.Fatal(err)
		}
		same(t, rest, after.records)
		r.Close()
	}
}

func TestSizesThatTheInputClaimsAreBounded(t *testing.T) {
	block := binary.AppendUvarint(nil, 1<<32-1)
	framed := append(append(bytes.Clone(xerial), 0, 0, 0, 1, 0, 0, 0, 1), 0, 0, 0, byte(len(block)))
	framed = append(framed, block...)
	for name, c := range map[string]struct {
		codec   int16
		payload []byte
		want    error // nil: a record that stands for the batch
	}{
		"snappy block of 4 GiB":  {2, append(block, 1, 2, 3), nil},
		"framed block of 4 GiB":  {2, framed, nil},
		"frame past the end":     {2, append(framed[:16:16], 255, 255, 255, 255, 1), ErrCorrupt},
		"frame cut off":          {2, framed[:18], ErrCorrupt},
		"no snappy":              {2, []byte{}, ErrCorrupt},
		"zstd window of 3 TiB":   {4, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 1, 0, 0}, ErrCorrupt}, // it has no content
		"zstd content of 2^63":   {4, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0}, nil},
		"zstd second frame":      {4, append(squeeze(4, []byte("x")), 0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 1, 0, 0), nil},
		"zstd first frame":       {4, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 1, 0, 0}, squeeze(4, []byte("x"))...), ErrCorrupt},
		"zstd skipping past end": {4, []byte{0x50, 0x2a, 0x4d, 0x18, 255, 255, 255, 255}, ErrCorrupt},
		"zstd block past end":    {4, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 8, 0xf1, 0xff, 0xff}, ErrCorrupt},
		"no zstd":                {4, []byte("hello world"), ErrCorrupt},
		"legacy lz4":             {3, []byte{0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0, 0, 0}, ErrCorrupt},
		"lz4 block past the end": {3, []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73, 255, 255, 255, 127}, ErrCorrupt},
		"two lz4 frames":         {3, append(squeeze(3, []byte("x")), squeeze(3, []byte("y"))...), ErrCorrupt},
		"no gzip":                {1, []byte("hello world"), ErrCorrupt},
	} {
		m := budget{limit: 1 << 40}
		r := Reader{Memory: &m}
		r.Reset(spec{attrs: c.codec, payload: c.payload, count: 1}.encode(), 0, nil)
		if rec, err := r.Next(); !errors.Is(err, c.want) || err == nil && rec.Whole == nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.Close(); m.most > 1<<20 || m.held != 0 {
			t.Errorf("%s: %d bytes taken, %d held", name, m.most, m.held)
		}
	}
}

func TestNothingIsLostWhereMemoryIsRefused(t *testing.T) {
	for _, codec := range codecs {
		s := sample(1<<20, 300_000, codec)
		in := append(plain(0, 3, codec).encode(), spec{base: 3, attrs: codec, records: shift(s.records, 3)}.encode()...)
		want, _, err := read(t, in, 0)
		require.NoError(t, err)
		if refused := refuse(t, in, want); codec != 0 && refused == 0 {
			t.Fatal("memory was never refused")
		}
	}
}

// refuse reads with too little memory, slightly more after every refusal, and requires the same records. It
// returns the number of refusals.
func refuse(t *testing.T, in []byte, want []record) (refused int) {
	t.Helper()
	m := budget{}
	r := Reader{Memory: &m}
	r.Reset(in, 0, nil)
	var got []record
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if errors.Is(err, ErrNoMemory) {
			if r.Position() != int64(len(got)) {
				t.Fatalf("position %d after %d records", r.Position(), len(got))
			}
			refused++
			m.limit += 32 << 10
			if refused%5 == 0 { // alternatively, start again from the position
				r.Close()
				require.Zero(t, m.held, "bytes are still held")
				r.Reset(in, r.Position(), nil)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, keep(rec))
	}
	same(t, got, want)
	if r.Close(); m.held != 0 {
		t.Fatalf("%d bytes are still held", m.held)
	}
	return refused
}

func shift(records []record, by int64) []record {
	for i := range records {
		records[i].offset += by
	}
	return records
}

func TestAfterAResponseLittleIsHeld(t *testing.T) {
	for _, codec := range codecs {
		m := budget{limit: 1 << 40}
		r := Reader{Memory: &m}
		r.Reset(sample(4<<20, 1<<20, codec).encode(), 0, nil)
		if _, err := readAll(t, &r); err != nil {
			t.Fatal(err)
		}
		if m.held != 0 {
			t.Errorf("%s: %d bytes are held at the end", codecNames[codec], m.held)
		}
		r.Close()
	}
}

func TestAReaderThatIsClosedOrNotYetResetHasNothing(t *testing.T) {
	var r Reader
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	r.Reset(plain(0, 3, 4).encode(), 0, nil)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := r.Next(); !errors.Is(err, io.EOF) || r.Position() != 1 {
		t.Fatalf("position %d: %v", r.Position(), err)
	}
}
