package recordbatch

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kgo"
)

// seeds returns the inputs of the corpus, one per feature of the format.
func seeds() [][]byte {
	heavy := plain(0, 2, 0)
	for range 50 {
		heavy.records[0].headers = append(heavy.records[0].headers, header{"trace", []byte("0123")}, header{"", nil})
	}
	heavy.records[1].key, heavy.records[1].value = nil, nil
	gaps := plain(10, 3, 0)
	gaps.records[1].offset, gaps.records[2].offset, gaps.last = 14, 17, 40
	transactions := join(
		with(plain(0, 2, attrTransactional), 7), with(plain(2, 2, attrTransactional), 8),
		marker(4, 7, abort), with(plain(5, 2, attrTransactional), 7), marker(7, 8, commit), marker(8, 7, commit))
	all := [][]byte{
		heavy.encode(), gaps.encode(), transactions,
		join(spec{base: 3, last: 9}, plain(10, 1, 0)), // an empty batch
		plain(0, 3, attrLogAppendTime).encode(),       // the broker's time
		join(plain(0, 2, 0), plain(2, 9, 0))[:200],    // cut off
	}
	for _, old := range oldMessages {
		all = append(all, append(plain(3, 2, 0).encode(), old.bytes()...))
	}
	for _, codec := range codecs {
		all = append(all, join(plain(0, 3, codec), plain(3, 8, codec)))
	}
	return all
}

func with(s spec, producer int64) spec {
	s.producer = producer
	return s
}

// For any input there is no panic, memory stays within the reservations, the position does not decrease
// (readAll), and input that franz-go also accepts gives the same records. CRCs are corrected first;
// otherwise only the CRC check would be tested.
func FuzzReader(f *testing.F) {
	for _, in := range seeds() {
		f.Add(in, int64(1), int64(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, from, aborted int64) {
		seal(in)
		list := func() []Aborted {
			return []Aborted{{aborted, from}, {aborted, 1}, {-aborted, 0}}
		}
		const limit = 4 << 20
		m := budget{limit: limit}
		r := Reader{Memory: &m, MaxRecord: 1 << 20, MaxCodec: 1 << 20}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.Reset(in, from, list())
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if r.Close(); m.held != 0 {
			t.Fatalf("%d bytes are still held", m.held)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > limit+64<<10+uint64(len(in))*64 {
			t.Fatalf("%d bytes allocated for %d", n, len(in))
		}

		r.MaxCodec = 1 << 30
		m.limit = 1 << 40
		r.Reset(in, from, list())
		got, err := readAll(t, &r)
		at := r.Position()
		r.Close()
		if err != nil || from < 0 {
			for _, known := range []error{nil, ErrCorrupt, ErrTruncated} {
				if errors.Is(err, known) {
					return
				}
			}
			if errors.As(err, new(*OldFormatError)) {
				return
			}
			t.Fatalf("an error without a name: %v", err)
		}
		if slices.ContainsFunc(got, func(r record) bool { return r.whole }) { // franz-go decompresses it
			return
		}
		agree(t, in, from, list(), got, at)
	})
}

// agree compares with franz-go where it decodes by the same rules. franz-go uses a batch's first offset to
// find aborted transactions, and this package the last one, which is the same unless two transactions share
// a batch. franz-go also keeps the records before a batch that it cannot decompress.
func agree(t *testing.T, in []byte, from int64, aborted []Aborted, got []record, at int64) {
	t.Helper()
	for b := in; len(b) > 0; {
		h, size, err := parseBatch(b)
		if err != nil {
			break
		}
		if h.attrs&0x80 != 0 { // undefined, but franz-go takes it for LogAppendTime
			return
		}
		if h.count == 0 && h.codec() != 0 { // there is nothing to decompress, but franz-go tries
			return
		}
		// franz-go checks the codec's checksum; this package relies on the batch's CRC.
		if _, err := kgo.DefaultDecompressor().Decompress(b[headerSize:size], kgo.CompressionCodecType(h.codec())); err != nil {
			return
		}
		for _, a := range aborted {
			if h.producer == a.Producer && h.transactional() {
				return
			}
		}
		b = b[size:]
	}
	want, next, err := franz(in, from, aborted...)
	if err != nil {
		return
	}
	for i := range want {
		const year2262 = 9_223_372_036_854 // franz-go's times wrap there
		if i < len(got) && (got[i].time > year2262 || got[i].time < -year2262) {
			want[i].time = got[i].time
		}
	}
	for i := range got { // franz-go reads a header's null key as an empty one
		if i < len(want) && len(got[i].key) == 0 && len(want[i].key) == 0 {
			want[i].key = got[i].key
		}
	}
	same(t, got, want)
	if at != next {
		t.Fatalf("next is %d, and franz-go's %d", at, next)
	}
}

// codecSize uses only the framing of an input. Of every input that it accepts, the codec must allocate no
// more than it returned.
func FuzzCodecSize(f *testing.F) {
	for _, e := range encoders {
		f.Add(e.codec, e.encode([]byte("a few bytes, a few bytes, a few bytes")))
	}
	f.Fuzz(func(t *testing.T, codec int16, payload []byte) {
		if codec < 1 || codec > 4 {
			return
		}
		size, descriptor, err := codecSize(int(codec), payload)
		if err != nil || size > 16<<20 {
			return
		}
		if size < 0 {
			t.Fatalf("%d bytes", size)
		}
		var before, after runtime.MemStats
		buf := make([]byte, 64<<10)
		runtime.ReadMemStats(&before)
		var src io.Reader = bytes.NewReader(payload)
		if descriptor != 0 {
			src = &narrow{bytes.NewReader(payload), descriptor}
		}
		c := compress.Codecs[codec].NewReader(src)
		n := 0
		for n < 64<<20 {
			k, err := c.Read(buf)
			if n += k; err != nil {
				break
			}
		}
		_ = c.Close() // repeats an error of Read
		runtime.ReadMemStats(&after)
		// Errors, and the discarded fields of a gzip header, take additional memory.
		if got := int64(after.TotalAlloc - before.TotalAlloc); got > size+64<<10+64*int64(len(payload)) {
			t.Fatalf("%s: %d bytes allocated, %d expected", codecNames[codec], got, size)
		}
	})
}
