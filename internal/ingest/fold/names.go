package fold

import (
	"bytes"
	"cmp"

	"github.com/standings/standings/internal/ledger"
)

// Members' display names, as their events give them. A member's name is that of the latest event; among events
// of the same time, the greatest bytes. Only events that count in a window set a name, and Redis decides which
// windows still live. Each change of a member therefore has the name from its own events.

// named is the display name that the events of one change give the member.
type named struct {
	time int64
	at   uint32 // its place, like that of an id
	len  uint16 // in bytes; 0: no name
}

// namesOf has the names of a chunk of members (their first changes), or of a chunk of further changes.
type namesOf = [memberChunk]named

const nameBytes = memberChunk * 16

// nameOf returns the name of the member's first change (change == first) or of a further one.
func (t *table) nameOf(member, change int) *named {
	if change == first {
		return &t.names[member/memberChunk][member%memberChunk]
	}
	return &t.changeNames[change/changeChunk][change%changeChunk]
}

// name sets the name of each change of an event that was added. The caller has reserved room for the text.
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

// nameChange sets the name of the change of one target. placed is the place of the text, plus one, if another
// change of the event already stored it, else 0. It returns the same value for the next change.
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

// laterName returns the later of two names; either may be nil.
func (t *table) laterName(a, b *named) *named {
	if t.compareNames(a, b) < 0 {
		return b
	}
	return a
}

// compareNames orders names by time, then text. Nil is before all others.
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

// said returns a name in a piece's form; without text if no event gave one.
func (t *table) said(n *named) ledger.Name {
	if n == nil {
		return ledger.Name{}
	}
	return ledger.Name{Text: t.text(n.at, n.len), Time: n.time}
}
