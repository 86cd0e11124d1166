package recordbatch

// Aborted transactions at read_committed (KIP-98). A producer is aborted from the batch that reaches a
// transaction's first offset until its abort marker.
//
// The response's list is sorted by producer and first offset. A transaction that a marker has ended is
// marked in the list itself, so that no other memory is needed and a batch costs one binary search.

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"
)

// over replaces First in a transaction that has ended. It keeps the order.
const over = math.MinInt64

func sortAborted(aborted []Aborted) {
	slices.SortFunc(aborted, func(a, b Aborted) int {
		return cmp.Or(cmp.Compare(a.Producer, b.Producer), cmp.Compare(a.First, b.First))
	})
}

// reached returns the index after the last of a producer's transactions that start at or before offset.
func (r *Reader) reached(producer, offset int64) int {
	return sort.Search(len(r.aborted), func(i int) bool {
		a := r.aborted[i]
		return a.Producer > producer || a.Producer == producer && a.First > offset
	})
}

// isOpen reports whether the transaction before index i belongs to the producer and has not ended.
func (r *Reader) isOpen(i int, producer int64) bool {
	return i > 0 && r.aborted[i-1].Producer == producer && r.aborted[i-1].First != over
}

func (r *Reader) isAborted(b batch) bool {
	return len(r.aborted) > 0 && b.transactional() && r.isOpen(r.reached(b.producer, b.last()), b.producer)
}

// marker handles a control record. Its key is a version and a type, each an int16; type 0 ends an aborted
// transaction and type 1 a committed one. Other types, such as a change of leader, do not concern
// transactions.
func (r *Reader) marker() error {
	if len(r.rec.Key) < 4 {
		return r.batch.corrupt("the key of the control record at offset %d has %d bytes", r.rec.Offset, len(r.rec.Key))
	}
	if binary.BigEndian.Uint16(r.rec.Key[2:]) != 0 {
		return nil
	}
	producer := r.batch.producer
	for i := r.reached(producer, r.batch.last()); r.isOpen(i, producer); i-- {
		r.aborted[i-1].First = over
	}
	return nil
}
