// Package duplicates finds events that occur twice in a partition, by the ids of the events at the offsets just
// before.
//
// An event at offset o is a duplicate if a valid event with the same ids is at an offset in [o-n, o), whether
// that one is a duplicate or not. This depends on the log only, as long as a Set gets every valid event of
// [o-n, o) before o. A reading that starts anywhere therefore first reads the n offsets before its start (see
// Begin).
//
//	ring   n hashes of 16 bytes; offset o is at o mod n; no hash if the event there is not valid
//	table  2n slots of 4 bytes, open addressing: hash -> its last place in the ring
//
// That is 24 bytes per offset, allocated once. An event allocates nothing.
package duplicates

import (
	"math/bits"
	"math/rand/v2"
)

const (
	// Bytes is the memory of a Set per offset that it looks back, in bytes.
	Bytes = 24
	// Most is the maximum number of offsets that a Set looks back; it takes 2.2 GiB. A larger number is most
	// likely a mistake, and must not use up the machine's memory. The 32-bit entries of the table can index it.
	Most = 100_000_000
)

// Set has the ids of the last n offsets of a partition. One goroutine at a time uses it.
type Set struct {
	ring  []ID
	table []uint32 // index in the ring, plus one; 0: free
	next  int64    // every offset before is known
	slot  int64    // the ring index of next
	held  int      // hashes in the table
	// The seed makes the place of a hash in the table unpredictable. Otherwise, a producer could choose ids
	// that all collide. The results do not depend on the seed.
	seed [4]uint64

	times times
}

// New returns a set that looks n offsets back, 1 to Most. Begin must be called before use.
func New(n int64) *Set {
	s := &Set{
		ring: make([]ID, n), table: make([]uint32, 2*n), next: -1,
		seed: [4]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}, //nolint:gosec // as unknown to producers as it has to be
	}
	s.times.every = max(1, n/timesKept)
	return s
}

// Records returns the number of offsets that the set looks back.
func (s *Set) Records() int64 { return int64(len(s.ring)) }

// Next returns the offset before which everything relevant is known, negative before Begin.
func (s *Set) Next() int64 { return s.next }

// Begin empties the set. All later calls are for this offset or higher ones.
func (s *Set) Begin(offset int64) {
	if s.held > 0 {
		clear(s.ring)
		clear(s.table)
		s.held = 0
	}
	s.next, s.slot = offset, offset%int64(len(s.ring))
	s.times.reset()
}

// Has reports whether the event at an offset is a duplicate. The offset must not be before Next. The caller may
// ask again until it adds or passes the offset.
func (s *Set) Has(offset int64, id ID) bool {
	s.Pass(offset)
	_, found := s.find(id)
	return found
}

// Add records a valid event. Its offset must not be before Next.
func (s *Set) Add(offset int64, id ID) {
	s.Pass(offset)
	at, found := s.find(id)
	index := uint32(s.slot)
	if !found {
		if s.drop(index) { // the entries behind it have moved up
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

// Pass records that all later events are at this offset or higher ones.
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

// home returns the slot at which the search for a hash starts.
func (s *Set) home(id ID) int {
	// Two rounds: with one, ids that share one half are placed at regular steps, which cluster for some seeds.
	high, low := bits.Mul64(id.a^s.seed[0], id.b^s.seed[1])
	high, low = bits.Mul64(high^low^s.seed[2], s.seed[3]|1)
	at, _ := bits.Mul64(high^low, uint64(len(s.table)))
	return int(at)
}

// find returns the slot of a hash in the table, or the slot where it would go.
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

// drop removes the ring's entry at an index, and reports whether the table changed. If the hash occurred again
// later, its slot stays, because it points to the later entry.
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

// free empties a slot of the table, and moves up the entries behind it that a search would no longer find.
func (s *Set) free(at int) {
	for next := s.after(at); s.table[next] != 0; next = s.after(next) {
		home := s.home(s.ring[s.table[next]-1])
		// An entry may move up unless its home is, in a circle, in (at, next].
		if at <= next && (home <= at || home > next) || at > next && home <= at && home > next {
			s.table[at], at = s.table[next], next
		}
	}
	s.table[at] = 0
}
