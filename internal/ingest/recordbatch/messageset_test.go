package recordbatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// oldCodecs are those of magic 0 and 1.
var oldCodecs = codecs[:4]

func TestEveryCodecOfTheOldFormatsGivesTheRecordsThatWereWritten(t *testing.T) {
	for magic := range byte(2) {
		for _, codec := range oldCodecs {
			s := old(magic, 100, 3000, int8(codec)) // larger than the window
			in := s.encode()
			got, next, err := read(t, in, 0)
			if err != nil || next != 3100 {
				t.Fatalf("magic %d, %s: next is %d: %v", magic, codecNames[codec], next, err)
			}
			same(t, got, s.seen())
		}
	}
}

func TestMagicsMayFollowOneAnotherInOneResponse(t *testing.T) {
	zero, zeros := joinSets(old(0, 3, 2, 0), old(0, 5, 9, 1), old(0, 20, 1, 0))
	one, ones := joinSets(old(1, 30, 9, 2), old(1, 40, 2, 0), old(1, 50, 9, 3))
	two := join(plain(60, 5, 0), plain(70, 5, 4))
	in := append(append(zero, one...), two...)
	twos, _, err := read(t, two, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := append(append(zeros, ones...), twos...)
	got, next, err := read(t, in, 0)
	if err != nil || next != 75 {
		t.Fatalf("next is %d: %v", next, err)
	}
	same(t, got, want)
	// A fetch may begin anywhere, a wrapper's inside among it.
	for from := range int64(76) {
		rest := want
		for len(rest) > 0 && rest[0].offset < from {
			rest = rest[1:]
		}
		got, next, err := read(t, in, from)
		if err != nil || next != max(75, from) {
			t.Fatalf("from %d: next is %d: %v", from, next, err)
		}
		same(t, got, rest)
	}
}

func TestCompactionLeavesGapsInWrappersAndTheirLastOffsetIsKept(t *testing.T) {
	for magic := range byte(2) {
		s := old(magic, 10, 3, 1)
		s.records[1].offset, s.records[2].offset = 14, 17
		got, next, err := read(t, s.encode(), 12)
		if err != nil || next != 18 {
			t.Fatalf("next is %d: %v", next, err)
		}
		same(t, got, s.seen()[1:])
	}
	// Of magic 0 a wrapper may stand past the last that is left in it.
	s := old(0, 10, 3, 1)
	s.last = 40
	if got, next, err := read(t, s.encode(), 0); err != nil || next != 41 || len(got) != 3 {
		t.Fatalf("%d records, next is %d: %v", len(got), next, err)
	}
}

func TestTheTimeOfAWrapperCountsUnderLogAppendTimeAlone(t *testing.T) {
	for _, codec := range oldCodecs[1:] {
		s := old(1, 0, 2, int8(codec)|attrLogAppendTime)
		got, _, err := read(t, s.encode(), 0)
		if err != nil || got[0].time != s.time || got[1].time != s.time {
			t.Fatalf("%+v: %v", got, err)
		}
		s = old(1, 0, 2, int8(codec))
		if got, _, err = read(t, s.encode(), 0); err != nil || got[1].time != s.records[1].time {
			t.Fatalf("%+v: %v", got, err)
		}
		// In magic 0 the bit has no meaning, and there is no time.
		if got, _, err = read(t, old(0, 0, 2, int8(codec)|attrLogAppendTime).encode(), 0); err != nil || got[0].time != -1 {
			t.Fatalf("%+v: %v", got, err)
		}
	}
}

// Brokers never stored them so, and Kafka's consumer reads them: the wrapper says
// how offsets count, and each message whether it has a time.
func TestAWrapperMayHoldMessagesOfTheOtherMagic(t *testing.T) {
	for wrapper, want := range map[byte][]record{
		0: {{offset: 8, time: -1, value: []byte("a")}, {offset: 9, time: 5, value: []byte("b")}},
		1: {{offset: 8, time: -1, value: []byte("a")}, {offset: 9, time: 77, value: []byte("b")}},
	} {
		first := int64(8) * int64(1-wrapper)
		inner := append(message{offset: first, value: []byte("a")}.encode(0), message{offset: first + 1, time: 5, value: []byte("b")}.encode(1)...)
		s := set{magic: wrapper, attrs: 1 | attrLogAppendTime, time: 77, last: 9, inner: inner}
		got, next, err := read(t, s.encode(), 0)
		if err != nil || next != 10 {
			t.Fatalf("magic %d: next is %d: %v", wrapper, next, err)
		}
		same(t, got, want)
	}
}

// What marks transactions and control records in magic 2 has no meaning here.
func TestBitsThatTheOldFormatsDontKnowMeanNothing(t *testing.T) {
	for magic := range byte(2) {
		in := message{offset: 5, value: []byte("v"), attrs: attrTransactional | attrControl}.encode(magic)
		got, next, err := read(t, in, 0, Aborted{0, 0})
		if err != nil || next != 6 || len(got) != 1 {
			t.Fatalf("%v, next is %d: %v", got, next, err)
		}
	}
}

func TestTheBrokenLZ4OfMagicZeroIsReadAndOfMagicOneRefused(t *testing.T) {
	for _, n := range []int{3, 3000} {
		s := old(0, 0, n, codecLZ4)
		inner, _ := joinSets(old(0, 0, n, 0))
		s.payload = brokenLZ4(inner)
		if bytes.Equal(s.payload, squeeze(codecLZ4, inner)) {
			t.Fatal("the sum isn't broken")
		}
		got, next, err := read(t, s.encode(), 0)
		if err != nil || next != int64(n) {
			t.Fatalf("next is %d: %v", next, err)
		}
		same(t, got, s.seen())
		s.magic, s.last = 1, int64(n)
		if _, _, err := read(t, s.encode(), 0); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("magic 1: %v", err)
		}
	}
	for name, e := range encoders {
		if e.codec != codecLZ4 {
			continue
		}
		inner, want := joinSets(old(0, 0, 10, 0))
		got, _, err := read(t, set{magic: 0, attrs: codecLZ4, last: 9, payload: e.encode(inner)}.encode(), 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, want)
	}
}

func TestALastMessageThatIsCutOffIsLeftForTheNextFetch(t *testing.T) {
	for magic := range byte(2) {
		first := old(magic, 0, 1, 0).encode()
		rest := old(magic, 1, 5, 1).encode()
		all := append(bytes.Clone(first), rest...)
		for n := len(first); n < len(all); n++ {
			got, next, err := read(t, all[:n], 0)
			if err != nil || next != 1 || len(got) != 1 {
				t.Fatalf("cut at %d: %d records, next %d: %v", n, len(got), next, err)
			}
		}
		for n := 1; n < len(first); n++ {
			if _, next, err := read(t, all[:n], 0); !errors.Is(err, ErrTruncated) || next != 0 {
				t.Fatalf("cut at %d, in the first message: next %d: %v", n, next, err)
			}
		}
	}
}

func TestAFlippedBitOfAnOldMessageIsSeen(t *testing.T) {
	for magic := range byte(2) {
		for _, codec := range oldCodecs {
			clean := old(magic, 0, 1, int8(codec)).encode()
			for i := 8 * messageCRCAt; i < 8*len(clean); i++ {
				in := bytes.Clone(clean)
				in[i/8] ^= 1 << (i % 8)
				if _, next, err := read(t, in, 0); err == nil || errors.Is(err, ErrTruncated) && i/8 != magicAt || next != 0 {
					t.Fatalf("bit %d: next %d: %v", i, next, err)
				}
			}
		}
	}
}

// A wrapper's own sum covers what is compressed; those inside have sums too.
func TestTheSumOfAMessageInsideAWrapperIsChecked(t *testing.T) {
	for magic := range byte(2) {
		inner, _ := joinSets(old(magic, 0, 3, 0))
		inner[len(inner)-1] ^= 1
		s := set{magic: magic, attrs: 1, last: 2, inner: inner}
		got, next, err := read(t, s.encode(), 0)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "message at offset 2: its CRC") || len(got) != 2 || next != 2 {
			t.Fatalf("%d records, next is %d: %v", len(got), next, err)
		}
	}
}

func TestAnOldMessageThatBreaksTheFormatIsRefusedAndNamesWhere(t *testing.T) {
	patch := func(magic byte, at int, b ...byte) []byte {
		in := old(magic, 40, 1, 0).encode()
		copy(in[at:], b)
		return seal(in)
	}
	wrap := func(magic byte, last int64, inner ...[]byte) []byte {
		return set{magic: magic, attrs: 1, last: last, inner: bytes.Join(inner, nil)}.encode()
	}
	at := func(magic byte, offset int64) []byte {
		return message{offset: offset, value: []byte("v")}.encode(magic)
	}
	sized := func(magic byte, size uint32) []byte {
		m := at(magic, 0)
		binary.BigEndian.PutUint32(m[8:], size)
		return m
	}
	for name, c := range map[string]struct {
		in   []byte
		says string
	}{
		"negative offset":            {patch(0, 0, 0x80), "offset is negative"},
		"largest offset":             {patch(1, 0, 0x7f, 255, 255, 255, 255, 255, 255, 255), "no offset can follow"},
		"size too small, magic 0":    {patch(0, 8, 0, 0, 0, 13), "less than the 14"},
		"size too small, magic 1":    {patch(1, 8, 0, 0, 0, 21), "less than the 22"},
		"negative size":              {patch(1, 8, 0x80), "less than the 22"},
		"key past it":                {patch(0, 18, 0, 0, 1, 0), "key ends past it"},
		"value past it":              {patch(1, 31, 0, 0, 1, 0), "value ends past it"},
		"value before its end":       {patch(1, 31, 0, 0, 0, 1), "28 bytes follow its value"},
		"null value before its end":  {patch(1, 31, 255), "29 bytes follow its value"},
		"zstd":                       {patch(1, 17, 4), "compression 4 is unknown in magic 1"},
		"codec 7":                    {patch(0, 17, 7), "compression 7 is unknown in magic 0"},
		"null wrapper":               {message{offset: 40, attrs: 1}.encode(1), "value is null"},
		"empty wrapper":              {message{offset: 40, attrs: 1, value: []byte{}}.encode(1), "message of magic 1 at offset 40"},
		"wrapper of nothing, 0":      {set{magic: 0, attrs: 1, last: 40, payload: squeeze(1, nil)}.encode(), "holds no message"},
		"wrapper of nothing, 1":      {set{magic: 1, attrs: 1, last: 40, payload: squeeze(1, nil)}.encode(), "holds no message"},
		"no gzip":                    {message{offset: 40, attrs: 1, value: []byte("hello world")}.encode(0), "gzip"},
		"nested, 0":                  {wrap(0, 40, old(0, 40, 1, 1).encode()), "at offset 40 is compressed again"},
		"nested, 1":                  {wrap(1, 40, at(1, 0), old(1, 1, 1, 1).encode()), "is compressed again"},
		"a batch inside":             {wrap(1, 40, plain(0, 1, 0).encode()), "has magic 2"},
		"offsets go back, 0":         {wrap(0, 40, at(0, 39), at(0, 39)), "inside it is offset 39, which should lie from 40 to 40"},
		"offsets go back, 1":         {wrap(1, 40, at(1, 1), at(1, 0)), "inside it offset 0 follows 1"},
		"negative offset inside, 0":  {wrap(0, 40, at(0, -1)), "inside it is offset -1"},
		"negative offset inside, 1":  {wrap(1, 40, at(1, -1)), "inside it offset -1 follows -1"},
		"offset past the wrapper, 0": {wrap(0, 40, at(0, 41)), "inside it is offset 41, which should lie from 0 to 40"},
		"offset past the wrapper, 1": {wrap(1, 40, at(1, 0), at(1, 41)), "has offset 41, which is past its own"},
		"largest offset inside, 1":   {wrap(1, 40, at(1, math.MaxInt64)), "which is past its own"},
		"size inside too small, 0":   {wrap(0, 40, sized(0, 13)), "has a size of 13 bytes"},
		"size inside too small, 1":   {wrap(1, 40, sized(1, 21)), "has a size of 21 bytes"},
		"negative size inside":       {wrap(1, 40, sized(1, 1<<31)), "has a size of -2147483648 bytes"},
		"size inside of 2 GiB, 0":    {wrap(0, 40, sized(0, 1<<31-1)), "ends past"},
		"size inside of 2 GiB, 1":    {wrap(1, 40, sized(1, 1<<31-1)), "bytes are missing"},
		"cut off inside, 0":          {wrap(0, 40, at(0, 0), at(0, 1)[:20]), "ends past"},
		"cut off inside, 1":          {wrap(1, 40, at(1, 0), at(1, 1)[:33]), "missing"},
		"cut off head inside":        {wrap(1, 40, at(1, 0), at(1, 1)[:9]), "ends past"},
	} {
		_, next, err := read(t, c.in, 0)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) || next > 40 {
			t.Errorf("%s: next is %d: %v", name, next, err)
		}
	}
}

func TestOffsetsOfOldMessagesThatGoBackAreRefused(t *testing.T) {
	for magic := range byte(2) {
		for _, codec := range oldCodecs {
			in, _ := joinSets(old(magic, 10, 3, 0), old(magic, 12, 3, int8(codec)))
			if got, next, err := read(t, in, 0); !errors.Is(err, ErrCorrupt) || next != 13 || len(got) != 3 {
				t.Fatalf("magic %d, %s: next is %d: %v", magic, codecNames[codec], next, err)
			}
		}
	}
	in := append(plain(10, 5, 0).encode(), old(1, 14, 1, 0).encode()...)
	if _, next, err := read(t, in, 0); !errors.Is(err, ErrCorrupt) || next != 15 {
		t.Fatalf("behind a batch: next is %d: %v", next, err)
	}
}

func TestAnOldMessageAboveTheLimitIsGoneOverAndReported(t *testing.T) {
	for magic := range byte(2) {
		for _, codec := range oldCodecs {
			s := old(magic, 5, 3, int8(codec))
			s.records[1].value = bytes.Repeat([]byte("0123456789"), 500_000)
			r := Reader{MaxRecord: 1000}
			r.Reset(s.encode(), 0, nil)
			var got []Record
			for {
				rec, err := r.Next()
				if err != nil {
					break
				}
				got = append(got, *rec)
			}
			if len(got) != 3 || r.Position() != 8 || got[0].Oversize != 0 || got[2].Oversize != 0 {
				t.Fatalf("magic %d, %s: %d records, next is %d: %v", magic, codecNames[codec], len(got), r.Position(), r.err)
			}
			over, want := got[1], s.seen()[1]
			if size := int64(5_000_001 + minSize(magic) - prefixSize); over.Oversize != size || over.Key != nil || over.Value != nil || over.Offset != 6 || over.Time != want.time {
				t.Fatalf("magic %d, %s: %+v", magic, codecNames[codec], over)
			}
			r.Close()
		}
	}
}

func TestThePositionInsideAWrapperIsWhereAnotherFetchCanGoOn(t *testing.T) {
	in, whole := joinSets(old(0, 3, 4, 1), old(1, 9, 6, 2), old(1, 20, 3, 0), old(0, 30, 3000, 3))
	for stop := 0; stop < len(whole); stop += 1 + stop/20*50 { // each of the small sets', a few of the large one's
		var r Reader
		r.Reset(in, 0, nil)
		for range stop {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		at := r.Position()
		r.Close()
		rest, _, err := read(t, in, at)
		if err != nil || r.Position() != at {
			t.Fatal(err)
		}
		same(t, rest, whole[stop:])
	}
}
