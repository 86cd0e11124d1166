package fold

import (
	"bytes"

	"github.com/standings/standings/internal/ledger"
)

// What members are called, by their events: of a member the name of the latest event, of those of
// one time the greatest bytes. So it is a function of the set of events, as a standing is. It is
// the member's, whatever boards and windows an event counts in.

// named is a member's name.
type named struct {
	time int64
	at   uint32 // where it is, as an id
	len  uint16 // 0: none
}

const nameBytes = memberChunk * 16

// roomForName takes the memory for an event's name, and for the member's id before it.
func (t *table) roomForName(id, name []byte) Result {
	for t.count >= len(t.names)*memberChunk {
		if r := t.take(nameBytes); r != Added {
			return r
		}
		t.names = append(t.names, namePool.Get().(*[memberChunk]named))
		clear(t.names[len(t.names)-1][:])
	}
	return t.roomForText(len(id) + len(name))
}

// name has the member that was added to last be called so, for which there is room.
func (t *table) name(name []byte, at int64) {
	n := &t.names[t.last/memberChunk][t.last%memberChunk]
	had := t.text(n.at, n.len)
	order := bytes.Compare(name, had)
	switch {
	case n.len > 0 && (at < n.time || at == n.time && order < 0):
		return
	case n.len > 0 && order == 0:
	case len(name) <= len(had):
		copy(had, name)
		n.len = uint16(len(name))
	default:
		n.at, n.len = t.place(name), uint16(len(name))
	}
	n.time = at
}

// nameOf is what a member is called; no text where no event said.
func (t *table) nameOf(i int) ledger.Name {
	if i/memberChunk >= len(t.names) {
		return ledger.Name{}
	}
	n := &t.names[i/memberChunk][i%memberChunk]
	if n.len == 0 {
		return ledger.Name{}
	}
	return ledger.Name{Text: t.text(n.at, n.len), Time: n.time}
}
