package deadletters

// A set of offsets that takes two or three bytes each where they are added nearly in
// order, as those of dead letters are: a partition is read in order, and goes back only
// where something was lost.

import (
	"encoding/binary"
	"slices"
)

// offsetSet is a set of offsets. The zero value is empty.
type offsetSet struct{ runs []offsetRun }

// offsetRun is ascending offsets in blocks: the first of each in full, the others as what
// lies between them, as uvarints.
type offsetRun struct {
	last   int64
	blocks []offsetBlock
}

type offsetBlock struct {
	first int64
	rest  []byte
	n     int
}

// blockOffsets is how many offsets are gone through to find one.
const blockOffsets = 128

// add adds an offset, and reports whether it wasn't there.
func (s *offsetSet) add(offset int64) bool {
	into := -1
	for i := range s.runs {
		r := &s.runs[i]
		if offset > r.last {
			if into < 0 {
				into = i
			}
			continue
		}
		if r.has(offset) {
			return false
		}
	}
	if into < 0 {
		s.runs = append(s.runs, offsetRun{})
		into = len(s.runs) - 1
	}
	s.runs[into].append(offset)
	return true
}

func (r *offsetRun) append(offset int64) {
	if n := len(r.blocks); n > 0 && r.blocks[n-1].n < blockOffsets {
		b := &r.blocks[n-1]
		b.rest = binary.AppendUvarint(b.rest, uint64(offset-r.last))
		b.n++
	} else {
		if n > 0 {
			r.blocks[n-1].rest = slices.Clip(r.blocks[n-1].rest)
		}
		r.blocks = append(r.blocks, offsetBlock{first: offset, n: 1})
	}
	r.last = offset
}

// has looks in the one block that may hold an offset.
func (r *offsetRun) has(offset int64) bool {
	i, found := slices.BinarySearchFunc(r.blocks, offset, func(b offsetBlock, at int64) int {
		switch {
		case b.first < at:
			return -1
		case b.first > at:
			return 1
		}
		return 0
	})
	if found || i == 0 {
		return found
	}
	at := r.blocks[i-1].first
	for rest := r.blocks[i-1].rest; len(rest) > 0 && at < offset; {
		step, n := binary.Uvarint(rest)
		at, rest = at+int64(step), rest[n:]
	}
	return at == offset
}
