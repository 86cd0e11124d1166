// Package duplicates finds events that stand twice in a partition: by the ids of those at the
// offsets just before.
//
// The promise: an event at offset o is a duplicate if a valid one with the same ids is at an
// offset in [o-n, o), a duplicate itself or not. That is a function of the log alone, as long as
// a Set is given every valid event of [o-n, o) before it is asked about o: so whoever begins
// anywhere first reads the n offsets before (see Begin).
//
//	ring   n hashes of 16 bytes, that of offset o at o mod n; no hash where no valid event is
//	table  2n slots of 4 bytes, open addressing: hash -> where in the ring it was last
//
// That is 24 bytes an offset, taken once; an event allocates nothing.
package duplicates

import (
	"math/bits"
	"math/rand/v2"
)

const (
	// Bytes is what a Set takes for an offset that it looks back.
	Bytes = 24
	// Most is the most offsets that a Set looks back: 2.2 GiB. A larger number is most likely a mistake,
	// and must not take the machine's memory. The table's entries, of 32 bits, have room for it.
	Most = 100_000_000
)

// Set is the ids of the last n offsets of a partition. It is used by one goroutine at a time.
type Set struct {
	ring  []ID
	table []uint32 // index in the ring plus one; 0: free
	next  int64    // every offset before is known
	slot  int64    // of next
	held  int      // hashes in the table
	// Where a hash goes is nobody's to know: who could choose ids by that would make all of
	// them collide. What is found doesn't depend on it.
	seed [4]uint64

	times times
}

// New makes a set that looks n offsets back, 1 to Most. It is of no use before Begin.
func New(n int64) *Set {
	s := &Set{
		ring: make([]ID, n), table: make([]uint32, 2*n), next: -1,
		seed: [4]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}, //nolint:gosec // as unknown to producers as it has to be
	}
	s.times.every = max(1, n/timesKept)
	return s
}

// Records is how many offsets the set looks back.
func (s *Set) Records() int64 { return int64(len(s.ring)) }

// Next is the offset before which all that matters is known, negative before Begin.
func (s *Set) Next() int64 { return s.next }

// Begin empties the set: what comes next is at an offset or later.
func (s *Set) Begin(offset int64) {
	if s.held > 0 {
		clear(s.ring)
		clear(s.table)
		s.held = 0
	}
	s.next, s.slot = offset, offset%int64(len(s.ring))
	s.times.reset()
}

// Has reports whether an event at an offset is a duplicate. The offset isn't before Next, and
// may be asked about again until it is added, or passed.
func (s *Set) Has(offset int64, id ID) bool {
	s.Pass(offset)
	_, found := s.find(id)
	return found
}

// Add notes a valid event, at an offset that isn't before Next.
func (s *Set) Add(offset int64, id ID) {
	s.Pass(offset)
	at, found := s.find(id)
	index := uint32(s.slot)
	if !found {
		if s.drop(index) { // what was behind it has moved up
			at, _ = s.find(id)
		}
		s.held++
	} else if s.table[at] != index+1 {
		s.drop(index)
		at, _ = s.find(id)
	}
	s.ring[index], s.table[at] = id, index+1
	s.step()
}

// Pass says that nothing more comes before an offset.
func (s *Set) Pass(offset int64) {
	for s.next < offset {
		if s.held == 0 {
			s.next, s.slot = offset, offset%int64(len(s.ring))
			return
		}
		s.drop(uint32(s.slot))
		s.step()
	}
}

func (s *Set) step() {
	s.next++
	if s.slot++; s.slot == int64(len(s.ring)) {
		s.slot = 0
	}
}

// home is where a hash's search begins.
func (s *Set) home(id ID) int {
	// Two rounds: by one, ids of which one half is the same go up by steps, which crowd by some seeds.
	high, low := bits.Mul64(id.a^s.seed[0], id.b^s.seed[1])
	high, low = bits.Mul64(high^low^s.seed[2], s.seed[3]|1)
	at, _ := bits.Mul64(high^low, uint64(len(s.table)))
	return int(at)
}

// find is where a hash is in the table, or where it would go.
func (s *Set) find(id ID) (at int, found bool) {
	for at = s.home(id); s.table[at] != 0; at = s.after(at) {
		if s.ring[s.table[at]-1] == id {
			return at, true
		}
	}
	return at, false
}

func (s *Set) after(at int) int {
	if at++; at == len(s.table) {
		return 0
	}
	return at
}

// drop forgets what the ring has at an index, and reports whether the table changed. A hash
// that came again later stays, as it is found there.
func (s *Set) drop(index uint32) bool {
	id := s.ring[index]
	if id == (ID{}) {
		return false
	}
	at, _ := s.find(id)
	here := s.table[at] == index+1
	if here {
		s.free(at)
		s.held--
	}
	s.ring[index] = ID{}
	return here
}

// free empties a slot of the table, and moves up whoever would no longer be found behind it.
func (s *Set) free(at int) {
	for next := s.after(at); s.table[next] != 0; next = s.after(next) {
		home := s.home(s.ring[s.table[next]-1])
		// It may move unless its home lies, in a circle, in (at, next].
		if at <= next && (home <= at || home > next) || at > next && home <= at && home > next {
			s.table[at], at = s.table[next], next
		}
	}
	s.table[at] = 0
}
