package recordbatch

// Whatever is well-formed of the old formats, held against franz-go's reading of it.

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// genSets draws ascending messages and wrappers of both magics, with batches of
// magic 2 among them.
func genSets(t *rapid.T) (in []byte, want []record) {
	next := rapid.Int64Range(0, 1000).Draw(t, "first")
	bytesOrNil := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 200))
	for range rapid.IntRange(0, 12).Draw(t, "sets") {
		next += rapid.Int64Range(0, 3).Draw(t, "gap")
		magic := rapid.SampledFrom([]byte{0, 1, 0, 1, 2}).Draw(t, "magic")
		if magic == 2 {
			s := plain(next, rapid.IntRange(1, 5).Draw(t, "records"), rapid.SampledFrom(codecs).Draw(t, "codec"))
			in, want = append(in, s.encode()...), append(want, s.records...)
			next = want[len(want)-1].offset + 1
			continue
		}
		s := set{magic: magic, attrs: int8(rapid.SampledFrom(oldCodecs).Draw(t, "codec")), time: rapid.Int64Range(-1, 1<<42).Draw(t, "set's time")}
		if magic == 1 && rapid.Bool().Draw(t, "append time") {
			s.attrs |= attrLogAppendTime
		}
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			r := record{offset: next, time: rapid.Int64Range(-1, 1<<42).Draw(t, "time"), key: bytesOrNil.Draw(t, "key"), value: bytesOrNil.Draw(t, "value")}
			if rapid.IntRange(0, 150).Draw(t, "large") == 0 {
				r.value = bytes.Repeat([]byte{1, 2, 3, byte(next)}, 30_000) // past the window
			}
			s.records = append(s.records, r)
			next += 1 + rapid.Int64Range(0, 2).Draw(t, "compacted")
		}
		in, want = append(in, s.encode()...), append(want, s.seen()...)
		next = want[len(want)-1].offset + 1
	}
	return in, want
}

// franz-go gives a message of magic 0 the year 1, and the messages inside a wrapper
// their own times under LogAppendTime: times are held to what was written.
func TestWhateverIsWellFormedOfTheOldFormatsReadsAsFranzGoReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, want := genSets(t)
		from := rapid.Int64Range(0, 1050).Draw(t, "from")
		for len(want) > 0 && want[0].offset < from {
			want = want[1:]
		}
		got, at, err := read(t, in, from)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
		other, next, err := franz(in, from)
		if err != nil || at != next {
			t.Fatalf("next is %d, and franz-go's %d: %v", at, next, err)
		}
		for i := range other {
			other[i].time = want[i].time
		}
		same(t, got, other)
	})
}
