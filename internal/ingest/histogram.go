package ingest

import (
	"slices"
	"sync/atomic"
	"time"
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

// Of times, in ns.
const (
	us  = int64(time.Microsecond)
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// The bounds, so that the usual lies in the middle.
var (
	eventBounds  = []int64{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000}
	updateBounds = []int64{0, 1, 3, 10, 30, 100, 250, 500, 1000, 2000, maxWidth}
	applyBounds  = []int64{
		250 * us, 500 * us, 1 * ms, 2500 * us, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
		1 * sec, 2500 * ms, 5 * sec,
	}
	standingBounds = []int64{
		5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, 1 * sec, 2500 * ms, 5 * sec, 10 * sec, 30 * sec,
		60 * sec, 300 * sec, 900 * sec, 3600 * sec,
	}
)

// BatchEvents is how many events batches had that were swept to their end.
func (s *Stats) BatchEvents() Distribution { return s.batchEvents.read(eventBounds) }

// PieceUpdates is how many member-windows pieces had that were applied.
func (s *Stats) PieceUpdates() Distribution { return s.pieceUpdates.read(updateBounds) }

// ApplyTime is how long the calls took that applied a piece, in ns.
func (s *Stats) ApplyTime() Distribution { return s.applyTime.read(applyBounds) }

// StandingTime is how long it took from the newest record of a batch until it
// counted, in ns, by the record's time and this machine's clock.
func (s *Stats) StandingTime() Distribution { return s.standingTime.read(standingBounds) }
