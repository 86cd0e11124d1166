package deadletter

// What a worker knows of the dead letters that were acknowledged to it, so that a flow that
// reads their originals again writes none of them again.

import "maps"

// Written is a range of source offsets [from, to) whose bad records all have a dead letter
// that was acknowledged to this worker. What isn't known to be the same log and the same
// reading begins it anew. It is used by one goroutine at a time.
type Written struct {
	from, to int64
	// Refused says that it is of members who are refused: which of the records in the range
	// are theirs is another question at every reading, so which have a letter is noted.
	Refused bool
	noted   map[int64]uint64 // a bit an offset, by its sixty-fourth
}

// mostNoted bounds noted: it is outside of the budget, and of what is beyond it letters may
// be written again. It is 4,096 letters, if there is one in 64 records, to 262,144.
const mostNoted = 1 << 12

// Begin is called where a flow reads from an offset on.
func (l *Written) Begin(at int64) {
	if at < l.from || at > l.to {
		l.anew(at)
	}
	maps.DeleteFunc(l.noted, func(block int64, _ uint64) bool { return block < at/64 })
}

func (l *Written) anew(at int64) { *l = Written{from: at, to: at, Refused: l.Refused} }

// Ends is called with the log's end by whoever reads from an offset on: records behind it
// were others.
func (l *Written) Ends(end, at int64) {
	if end < l.to {
		l.anew(at)
	}
}

// acknowledged takes note of a set, all before which that the flow has read were
// acknowledged. It reports whether none of the set is going to be written again.
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
