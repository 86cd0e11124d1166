package codec

import (
	"testing"
)

var kinds = []Kind{Readable, Wide}

func TestCodingAllocatesNothing(t *testing.T) {
	for _, kind := range kinds {
		l := mustNew(t, kind, weekly, 99_999_999)
		allocs := testing.AllocsPerRun(100, func() {
			score, _ := l.Encode(25, l.Ticks(0, 1000, 500))
			points, _, err := l.Decode(score)
			if points != 25 || err != nil {
				t.Errorf("%v: %d, %v", l, points, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v: %v allocations", l, allocs)
		}
	}
}

// BenchmarkTuple encodes and decodes tuples, and for comparison the single field of points.
func BenchmarkTuple(b *testing.B) {
	for name, list := range map[string][]Field{"points": points, "arena": arena, "medals": medals} {
		for _, kind := range kinds {
			l := mustTupleLayout(b, kind, weekly, mustFields(b, list...))
			b.Run(name+"/"+string(kind)+"/encode", func(b *testing.B) {
				b.ReportAllocs()
				n := int64(0)
				for b.Loop() {
					if _, err := l.Encode(Tuple{n & 511, n & 63}, n&0xfff); err != nil {
						b.Fatal(err)
					}
					n++
				}
			})
			b.Run(name+"/"+string(kind)+"/decode", func(b *testing.B) {
				score, err := l.Encode(Tuple{42, 3}, 1234)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := l.Decode(score); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
