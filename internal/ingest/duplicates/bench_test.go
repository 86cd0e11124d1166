package duplicates

import (
	"encoding/binary"
	"fmt"
	"testing"
)

func BenchmarkOf(b *testing.B) {
	id, user := []byte("01J9ZK3V5N8Q2R4T6W8Y0A1B2C"), []byte("user-1234567")
	b.ReportAllocs()
	for b.Loop() {
		_ = Of(id, user)
	}
}

// BenchmarkSet measures one event with a known ID in a full set. One event in twenty is a duplicate.
func BenchmarkSet(b *testing.B) {
	for _, n := range []int64{10_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New(n)
			s.Begin(0)
			ids := make([]ID, 1<<16)
			var text [8]byte
			for i := range ids {
				binary.LittleEndian.PutUint64(text[:], uint64(i))
				ids[i] = Of(text[:], []byte("u"))
			}
			// These ids are as random as so many hashes.
			id := func(o int64) ID {
				if o%20 == 19 {
					o -= 10
				}
				base := ids[o&(1<<16-1)]
				return ID{base.a + uint64(o>>16), base.b}
			}
			o := int64(0)
			for ; o < n; o++ {
				s.Add(o, id(o))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				s.Has(o, id(o))
				s.Add(o, id(o))
				o++
			}
			b.ReportMetric(float64(len(s.ring)*16+len(s.table)*4)/float64(n), "bytes/record")
		})
	}
}
