package deadletter

// A worker remembers which dead letters were acknowledged, so that a flow that reads their originals again does
// not write them again.

import "maps"

// Written is a range of source offsets [from, to). Each bad record in it has an acknowledged dead letter. It
// starts again when the log or the reading may be another. One goroutine at a time uses it.
type Written struct {
	from, to int64
	// Refused is true if the dead letters are those of refused members. The refused members may differ in each
	// reading, so the offset of each dead letter is noted.
	Refused bool
	noted   map[int64]uint64 // offset/64 → one bit for each of 64 offsets
}

// mostNoted bounds noted, which is not part of the memory budget. Dead letters that do not fit may be written
// again. It allows 4,096 dead letters (one in 64 records) to 262,144.
const mostNoted = 1 << 12

// Begin starts a flow that reads from this offset on.
func (l *Written) Begin(at int64) {
	if at < l.from || at > l.to {
		l.anew(at)
	}
	maps.DeleteFunc(l.noted, func(block int64, _ uint64) bool { return block < at/64 })
}

func (l *Written) anew(at int64) { *l = Written{from: at, to: at, Refused: l.Refused} }

// Ends records the end of the log, which the flow reads from offset at on. If the log ends before to, later
// records were others, and the range starts again.
func (l *Written) Ends(end, at int64) {
	if end < l.to {
		l.anew(at)
	}
}

// acknowledged records a set. All earlier bad records that the flow has read were acknowledged before. It
// reports whether no record of the set will be written again.
func (l *Written) acknowledged(set []deadLetter) bool {
	if l == nil {
		return false
	}
	l.to = max(l.to, set[len(set)-1].offset+1)
	all := true
	for i := 0; l.Refused && i < len(set); i++ {
		all = l.note(set[i].offset) && all
	}
	return all
}

func (l *Written) note(offset int64) bool {
	bits, ok := l.noted[offset/64]
	if !ok && len(l.noted) >= mostNoted {
		return false
	}
	if l.noted == nil {
		l.noted = map[int64]uint64{}
	}
	l.noted[offset/64] = bits | 1<<(offset%64)
	return true
}

// Has reports whether the dead letter of a bad record is known to be written.
func (l *Written) Has(offset int64) bool {
	return l.from <= offset && offset < l.to && (!l.Refused || l.noted[offset/64]&(1<<(offset%64)) != 0)
}
