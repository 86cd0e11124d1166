package loaded

import (
	"math"
	"slices"
)

// sketch estimates how many different hashes it has seen, by the lowest of them: of n that are spread
// evenly the kth lowest is about at k/n of their range. By a thousand it is right to some 3%.
type sketch struct{ lowest []uint64 }

const sketched = 1024

func (s *sketch) add(hash uint64) {
	if len(s.lowest) == sketched && hash >= s.lowest[sketched-1] {
		return
	}
	at, found := slices.BinarySearch(s.lowest, hash)
	if found {
		return
	}
	s.lowest = slices.Insert(s.lowest, at, hash)
	s.lowest = s.lowest[:min(len(s.lowest), sketched)]
}

func (s *sketch) estimate() float64 {
	if len(s.lowest) < sketched {
		return float64(len(s.lowest))
	}
	return (sketched - 1) * (math.MaxUint64 / float64(s.lowest[sketched-1]))
}
