package ingest

import (
	"slices"
	"sync/atomic"
)

// histogram counts values by size. It is safe for concurrent use, and its zero value
// is empty; the bounds are the same at every call.
type histogram struct {
	counts [17]atomic.Int64 // of the values up to each bound, and above the last
	sum    atomic.Int64
}

func (h *histogram) observe(bounds []int64, value int64) {
	i, _ := slices.BinarySearch(bounds, value) // a bound belongs to what lies below
	h.counts[i].Add(1)
	h.sum.Add(value)
}

// Distribution is a histogram as it was read.
type Distribution struct {
	Bounds []int64 // ascending; values up to each, bound included
	Counts []int64 // as many, cumulative
	Count  int64   // of all values, those above the last bound too
	Sum    int64
}

func (h *histogram) read(bounds []int64) Distribution {
	d := Distribution{Bounds: bounds, Sum: h.sum.Load()}
	for i := range bounds {
		d.Count += h.counts[i].Load()
		d.Counts = append(d.Counts, d.Count)
	}
	d.Count += h.counts[len(bounds)].Load()
	return d
}
