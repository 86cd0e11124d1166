package duplicates

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naive is the definition: it searches all events of the log.
type naive struct {
	n      int64
	events []seen
}

type seen struct {
	offset int64
	id     ID
}

func (m *naive) has(offset int64, id ID) bool {
	for _, e := range m.events {
		if e.id == id && e.offset >= offset-m.n && e.offset < offset {
			return true
		}
	}
	return false
}

// few returns one of a few ids. Some of them have the same home for every seed, because their products are
// equal.
func few(i int) ID { return Of([]byte{byte(i), 1}, []byte("u")) }

func TestASetFindsWhatTheDefinitionFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 20).Draw(t, "n")
		s, m := New(n), &naive{n: n}
		offset := rapid.Int64Range(0, 50).Draw(t, "first")
		s.Begin(offset)
		for range rapid.IntRange(1, 200).Draw(t, "records") {
			offset += rapid.SampledFrom([]int64{0, 0, 0, 0, 1, 2, n - 1, n, n + 1}).Draw(t, "gap")
			id := few(rapid.IntRange(0, int(n)+3).Draw(t, "id"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // no valid event
				s.Pass(offset + 1)
			case 1: // asked twice, as for a full batch
				require.Equal(t, m.has(offset, id), s.Has(offset, id))
				fallthrough
			default:
				require.Equal(t, m.has(offset, id), s.Has(offset, id), "at %d", offset)
				s.Add(offset, id)
				m.events = append(m.events, seen{offset, id})
			}
			offset++
			require.Equal(t, offset, s.Next())
			s.check(t)
		}
	})
}

// check compares the table with the ring.
func (s *Set) check(t require.TestingT) {
	held := map[ID]bool{}
	for _, id := range s.ring {
		if id != (ID{}) {
			held[id] = true
		}
	}
	require.Len(t, held, s.held)
	used := 0
	for _, i := range s.table {
		if i != 0 {
			used++
		}
	}
	require.Equal(t, s.held, used)
	for id := range held {
		at, found := s.find(id)
		require.True(t, found)
		// The slot points to the last occurrence: no later entry up to next has the same hash.
		for i := int64(s.table[at]); i%int64(len(s.ring)) != s.slot; i++ {
			require.NotEqual(t, id, s.ring[i%int64(len(s.ring))])
		}
	}
}

func TestWhoeverBeginsAnywhereFindsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 12).Draw(t, "n")
		log := rapid.SliceOfN(rapid.IntRange(-2, int(n)), 1, 120).Draw(t, "log") // negative: no valid event
		find := func(from int) (found []bool) {
			s := New(n)
			s.Begin(max(0, int64(from)-n))
			for o := int(s.Next()); o < len(log); o++ {
				duplicate := log[o] >= 0 && s.Has(int64(o), few(log[o]))
				if log[o] >= 0 {
					s.Add(int64(o), few(log[o]))
				}
				if o >= from {
					found = append(found, duplicate)
				}
			}
			return found
		}
		all := find(0)
		from := rapid.IntRange(0, len(log)-1).Draw(t, "from")
		require.Equal(t, all[from:], find(from))
	})
}

// An off-by-one error would find a record n+1 before, or miss one n before.
func TestNOffsetsBeforeIsTheLastThatCounts(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 1000} {
		s := New(n)
		s.Begin(0)
		s.Add(5, few(1))
		require.True(t, s.Has(5+n, few(1)), "%d before", n)
		require.False(t, s.Has(5+n+1, few(1)), "%d before", n+1)
	}
}

func TestADuplicateMakesTheNextOneADuplicateToo(t *testing.T) {
	s := New(3)
	s.Begin(0)
	for o := int64(0); o < 30; o += 3 {
		require.Equal(t, o > 0, s.Has(o, few(1)))
		s.Add(o, few(1))
	}
}

func TestIDsAreNotAmbiguousWhereTheyAreJoined(t *testing.T) {
	pairs := map[ID]string{}
	text := bytes.Repeat([]byte("a"), 2*Longest)
	for i := 1; i <= Longest; i++ {
		for _, j := range []int{1, 2, 255, 256, Longest - i + 1} {
			if j < 1 || j > Longest {
				continue
			}
			pair := fmt.Sprintf("%d+%d", i, j)
			id := Of(text[:i], text[:j])
			if other, ok := pairs[id]; ok && other != pair {
				t.Fatalf("%s and %s have one id", pair, other)
			}
			pairs[id] = pair
		}
	}
	require.NotEqual(t, Of([]byte("a"), []byte("bc")), Of([]byte("ab"), []byte("c")))
	require.NotEqual(t, Of([]byte("a"), []byte("b")), Of([]byte("b"), []byte("a")))
}

// Every version and every machine must find the same duplicates in a log, so the hash is fixed.
func TestAnIDIsTheSameForEver(t *testing.T) {
	// The length of the first id in two bytes, little-endian; both ids; then the first 16 bytes of the SHA-256.
	require.Equal(t, ID{0xde5e4d6b50b9bec5, 0x6ca8f5ef46ea0e9c}, Of([]byte("e1"), []byte("u1")))
}

func TestNothingIsAllocatedForAnEvent(t *testing.T) {
	s := New(1000)
	s.Begin(0)
	o := int64(0)
	var id [8]byte
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		binary.LittleEndian.PutUint64(id[:], uint64(o/2))
		key := Of(id[:], []byte("user"))
		s.Has(o, key)
		s.Add(o, key)
		s.Time(o, o)
		o++
	}))
}

// A producer that chooses ids by the public part of their hashes cannot choose their places.
func TestIDsThatAreAlikeInAnyBitsDoNotCrowd(t *testing.T) {
	const n = 4096
	for _, alike := range []func(i uint64) ID{
		func(i uint64) ID { return ID{i, 7} },
		func(i uint64) ID { return ID{7, i} },
		func(i uint64) ID { return ID{i << 50, 7} },
		func(i uint64) ID { return ID{i, i} },
	} {
		for range 100 { // seeds: a producer could wait for a seed with which ids cluster
			s := New(n)
			s.Begin(0)
			for o := range int64(n) {
				s.Add(o, alike(uint64(o)+1))
			}
			longest, run := 0, 0
			for _, i := range s.table {
				if run++; i == 0 {
					run = 0
				}
				longest = max(longest, run)
			}
			require.Less(t, longest, 200)
		}
	}
}

func TestAGapIsPassedInOneStepOnceNothingIsLeft(t *testing.T) {
	s := New(4)
	s.Begin(0)
	s.Add(0, few(1))
	s.Pass(1 << 60)
	require.Zero(t, s.held)
	require.False(t, s.Has(1<<60, few(1)))
	s.Add(1<<60, few(1))
	require.True(t, s.Has(1<<60+4, few(1)))
}

func TestTheTimeThatIsCoveredIsThatOfTheOldestRecord(t *testing.T) {
	for _, n := range []int64{1, 63, 64, 65, 1000, 100_000} {
		s := New(n)
		s.Begin(500)
		require.Zero(t, s.Oldest())
		for o := int64(500); o < 500+3*n; o++ {
			s.Time(o, 10*o)
			s.Pass(o + 1)
			from := max(500, o-n)
			require.GreaterOrEqual(t, s.Oldest(), 10*(from-max(1, n/timesKept)))
			require.LessOrEqual(t, s.Oldest(), 10*(from+2*max(1, n/timesKept)), "of %d, at %d", n, o)
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add(uint8(3), []byte{0, 1, 0, 2, 0, 1, 9, 1})
	f.Fuzz(func(t *testing.T, size uint8, steps []byte) {
		n := int64(size%40) + 1
		s, m := New(n), &naive{n: n}
		s.Begin(0)
		offset := int64(0)
		for i := 0; i+1 < len(steps) && i < 400; i += 2 {
			offset += int64(steps[i] % 8)
			id := few(int(steps[i+1] % 64))
			require.Equal(t, m.has(offset, id), s.Has(offset, id))
			if steps[i] < 200 {
				s.Add(offset, id)
				m.events = append(m.events, seen{offset, id})
			}
			offset++
		}
		s.check(t)
	})
}
