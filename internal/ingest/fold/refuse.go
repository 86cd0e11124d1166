package fold

import "github.com/standings/standings/internal/ledger"

// Refused members: Redis refused them, so a batch's pieces leave them out and count their events separately.
// The batch only has sums; their events are in the log. All refused members of the batch are therefore marked
// first, and then their events are found again in one reading.

// pending marks a refused member whose events have not been found again yet.
const pending = 0x80

// Refuse removes a member from the pieces. It reports false if the batch does not have the member, or it was
// refused before.
func (b *Batch) Refuse(id []byte, reason ledger.Reason) bool {
	at := b.table.find(Hash(id), id).at
	if at < 0 || b.table.member(at).refused != 0 {
		return false
	}
	m := b.table.member(at)
	m.refused = uint8(reason) | pending
	b.pending += int64(m.events)
	return true
}

// Pending returns the reason why the member of the event at this offset was refused. It returns 0 if the member
// was not refused, if its events were found before, if its shard had already counted the event, or if the event
// is a duplicate.
func (b *Batch) Pending(id []byte, offset int64) ledger.Reason {
	hash := Hash(id)
	at := b.table.find(hash, id).at
	if at < 0 || b.table.member(at).refused&pending == 0 || offset < b.stands[b.shards.Of(hash)].from {
		return 0
	}
	if b.table.isDuplicate(offset) {
		return 0
	}
	return b.table.member(at).reason()
}

// PendingEvents returns the number of events that have not been found again yet.
func (b *Batch) PendingEvents() int64 { return b.pending }

// Found records that all pending events were found.
func (b *Batch) Found() {
	for i := range b.table.count {
		b.table.member(i).refused &^= pending
	}
	b.pending = 0
}

func (m *member) reason() ledger.Reason { return ledger.Reason(m.refused &^ pending) }
