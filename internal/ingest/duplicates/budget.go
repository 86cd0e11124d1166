package duplicates

import "sync/atomic"

// Budget is the memory that a process has for all of its sets. It is safe for concurrent use.
type Budget struct {
	total int64
	used  atomic.Int64
}

// NewBudget makes one of so many bytes.
func NewBudget(total int64) *Budget { return &Budget{total: total} }

// New makes a set that looks n offsets back, or nil where there is no room for it.
func (b *Budget) New(n int64) *Set {
	if b.used.Add(Bytes*n) > b.total {
		b.used.Add(-Bytes * n)
		return nil
	}
	return New(n)
}

// Free gives back what a set takes, which isn't used any more. Nil takes nothing.
func (b *Budget) Free(s *Set) {
	if s != nil {
		b.used.Add(-Bytes * s.Records())
	}
}

// Total and Used are bytes.
func (b *Budget) Total() int64 { return b.total }

// Used is what the sets take that there are.
func (b *Budget) Used() int64 { return b.used.Load() }

// Fit is how many offsets sets can look back of which there are so many in a budget.
func Fit(total int64, sets int) int64 { return total / Bytes / int64(max(1, sets)) }
