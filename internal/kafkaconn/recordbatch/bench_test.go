package recordbatch

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// response returns a fetch response of 20,000 events in batches of size records, and the number of records.
func response(codec int16, size int) (in []byte, records int) {
	const total = 20_000
	for base := 0; base < total; base += size {
		s := spec{base: int64(base), attrs: codec, producer: -1, time: 1_700_000_000_000}
		for i := range size {
			s.records = append(s.records, record{offset: int64(base + i), time: s.time + int64(i),
				key:   fmt.Appendf(nil, "u%d", (base+i)*7919%100_000),
				value: fmt.Appendf(nil, `{"event_id":"01J%08d","board":"global","user_id":"u%d","points":%d,"occurred_at":"2026-11-21T08:15:30.123Z"}`, base+i, (base+i)*7919%100_000, i%50)})
		}
		in = append(in, s.encode()...)
	}
	return in, total
}

func BenchmarkNext(b *testing.B) {
	for _, codec := range codecs {
		for _, size := range []int{1, 10, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", codecNames[codec], size), func(b *testing.B) {
				in, records := response(codec, size)
				r := Reader{Memory: &budget{limit: 1 << 40}}
				defer r.Close()
				b.ReportAllocs()
				b.SetBytes(int64(len(in)))
				b.ResetTimer()
				for b.Loop() {
					r.Reset(in, 0, nil)
					n := 0
					for {
						if _, err := r.Next(); errors.Is(err, io.EOF) {
							break
						} else if err != nil {
							b.Fatal(err)
						}
						n++
					}
					if n != records {
						b.Fatalf("%d records", n)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
			})
		}
	}
}

// For a compressed batch kafka-go allocates the handle of a pooled codec.
func TestNothingIsAllocatedPerRecordOrPerBatch(t *testing.T) {
	in, _ := response(0, 100)
	var r Reader
	once := func() {
		r.Reset(in, 0, nil)
		for {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(5, once); n > 0 {
		t.Errorf("%v allocations in a response of 200 batches", n)
	}
}
