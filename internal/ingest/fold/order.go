package fold

import (
	"cmp"
	"math/bits"
	"slices"
)

// walk reads a table's members in ascending order of their hashes.
type walk struct {
	table  *table
	prefix int     // the next bucket, in the order of hashes, at the table's level
	half   bool    // the bucket's second half is next
	run    []int32 // the members of the current bucket, sorted
	at     int
}

func (w *walk) reset(t *table) {
	*w = walk{table: t, run: w.run[:0]}
}

// seek moves to the first member whose hash is at least hash.
func (w *walk) seek(hash uint64) {
	w.reset(w.table)
	t := w.table
	if t.count == 0 {
		return
	}
	w.prefix = int(hash >> (64 - t.level))
	// The second half of a split bucket has one more address bit set.
	w.half = t.address(hash) >= 1<<t.level
	for i := w.peek(); i >= 0 && t.member(i).hash < hash; i = w.peek() {
		w.next()
	}
}

// peek returns the index of the next member, or -1 after the last.
func (w *walk) peek() int {
	for w.at == len(w.run) {
		if !w.fill() {
			return -1
		}
	}
	return int(w.run[w.at])
}

func (w *walk) next() { w.at++ }

// fill loads the next bucket. A bucket that was split consists of two halves, which follow each other in the
// order of hashes.
func (w *walk) fill() bool {
	t := w.table
	if t.count == 0 || w.prefix == 1<<t.level {
		return false
	}
	i := int(bits.Reverse64(uint64(w.prefix)) >> (64 - t.level))
	if w.half {
		i += 1 << t.level
	}
	if !w.half && i < t.split {
		w.half = true
	} else {
		w.half = false
		w.prefix++
	}
	w.run, w.at = w.run[:0], 0
	for k := *t.bucket(i); k != 0; k = t.member(int(k - 1)).next {
		w.run = append(w.run, k-1)
	}
	if len(w.run) > 1 {
		slices.SortFunc(w.run, func(a, b int32) int {
			return cmp.Compare(t.member(int(a)).hash, t.member(int(b)).hash)
		})
	}
	return true
}
