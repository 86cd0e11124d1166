package ingest

import (
	"slices"
	"sync/atomic"
)

// histogram counts values by size. It is safe for concurrent use, and its zero value is empty. Every call must
// pass the same bounds.
type histogram struct {
	counts [17]atomic.Int64 // values up to each bound, and those above the last bound
	sum    atomic.Int64
}

func (h *histogram) observe(bounds []int64, value int64) {
	i, _ := slices.BinarySearch(bounds, value) // a value equal to a bound counts as below it
	h.counts[i].Add(1)
	h.sum.Add(value)
}

// Distribution is a snapshot of a histogram.
type Distribution struct {
	Bounds []int64 // ascending; values up to each, bound included
	Counts []int64 // one per bound, cumulative
	Count  int64   // all values, including those above the last bound
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
