package fold

import (
	"bytes"
	"cmp"

	"github.com/standings/standings/internal/ledger"
)

// What members are called, by their events: of a member the name of the latest event, of those of
// one time the greatest bytes. Only events that count in a window name a member, and which windows
// still live is Redis's to decide. So each of a member's changes has the name of its own events.

// named is the name that the events of a change give their member.
type named struct {
	time int64
	at   uint32 // where it is, as an id
	len  uint16 // 0: none
}

// namesOf is a chunk of the names of members' first changes, or of further ones.
type namesOf = [memberChunk]named

const nameBytes = memberChunk * 16

// nameOf is the name of a member's own change (first), or of a further one.
func (t *table) nameOf(member, change int) *named {
	if change == first {
		return &t.names[member/memberChunk][member%memberChunk]
	}
	return &t.changeNames[change/changeChunk][change%changeChunk]
}

// name gives the changes of an event that was added its name, for which there is room.
func (b *Batch) name(e *Event) {
	if e.Tuples == nil {
		b.nameChange(e, b.targets.lastTarget, 0)
		return
	}
	at := uint32(0)
	for _, p := range b.targets.byRules.parts {
		at = b.nameChange(e, p.target, at)
	}
}

// nameChange gives the change of a target an event's name. placed is where another change of the
// event has the text, plus one; 0 if none has. It returns the same for the next change.
func (b *Batch) nameChange(e *Event, target int32, placed uint32) uint32 {
	t := &b.table
	n := t.nameOf(t.last, b.changeOf(t.last, target))
	order := bytes.Compare(e.Name, t.text(n.at, n.len))
	switch {
	case n.len > 0 && (e.Time < n.time || e.Time == n.time && order < 0):
		return placed
	case n.len > 0 && order == 0:
	default:
		if placed == 0 {
			placed = t.place(e.Name) + 1
		}
		n.at, n.len = placed-1, uint16(len(e.Name))
	}
	n.time = e.Time
	return placed
}

// laterName is the later of two names, either of which may be nil.
func (t *table) laterName(a, b *named) *named {
	if t.compareNames(a, b) < 0 {
		return b
	}
	return a
}

// compareNames orders names by time and text. None is before any.
func (t *table) compareNames(a, b *named) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(t.text(a.at, a.len), t.text(b.at, b.len)))
}

// said is a name as a piece has it; no text where no event said.
func (t *table) said(n *named) ledger.Name {
	if n == nil {
		return ledger.Name{}
	}
	return ledger.Name{Text: t.text(n.at, n.len), Time: n.time}
}
