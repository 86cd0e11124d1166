package fold

import "github.com/standings/standings/internal/ledger"

// Members that the standings refuse are taken out of a batch: its pieces leave them out,
// and count their events apart. Their events are in the log, and the fold keeps sums; so
// they are marked first, all that the batch has, and then found again in one reading.

// pending marks a refused member whose events haven't been found again yet.
const pending = 0x80

// Refuse takes a member out. It reports false for one that the batch doesn't have, or
// that was refused before.
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

// Pending returns why a member was refused to whom the event at an offset belongs: 0 if it
// wasn't, if its events were found before, if its shard had the event already, or if that is
// a duplicate.
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

// PendingEvents is the number of events to be found.
func (b *Batch) PendingEvents() int64 { return b.pending }

// Found says that they were.
func (b *Batch) Found() {
	for i := range b.table.count {
		b.table.member(i).refused &^= pending
	}
	b.pending = 0
}

func (m *member) reason() ledger.Reason { return ledger.Reason(m.refused &^ pending) }
