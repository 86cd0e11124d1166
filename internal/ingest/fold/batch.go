// Package fold adds up the events of one partition until they are swept: the
// fewer updates an event costs, the faster a consumer that is behind catches
// up.
//
//	events ──▶ targets ──▶ table ──▶ pieces
//	           (the windows  (member,   (in the order of their
//	           they count    change →   members' hashes)
//	           in)           points,
//	                         time)
//
// A batch is bounded by memory and by nothing else, but for two things: it ends
// before the changes of one hash pass a thousand member-windows, since no piece
// is smaller than one hash, and before its members, changes or ids are more than
// their indexes tell apart. Ids whose hashes were made alike don't bound it: see
// crowds.
package fold

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ledger"
	boardrules "github.com/standings/standings/internal/rules"
)

// Hash is the hash of a member's id, by which a sweep is ordered: xxHash64.
func Hash(id []byte) uint64 { return xxhash.Sum64(id) }

// maxPerHash is the most member-windows that the changes of one hash may take.
const maxPerHash = 1000

// Result says what became of an event that was to be folded.
type Result int

const (
	// Added to its member's sum.
	Added Result = iota
	// Late: no window takes it any more.
	Late
	// Early: no window takes it, for it lies before the first of every period.
	Early
	// Repeated: its member was swept before the position that the batch starts from.
	Repeated
	// Left for another reading, which starts at the hash that this one ends at.
	Left
	// Elsewhere: its shard is none of the reading's; another counts it, as a record too.
	Elsewhere
	// Full: the batch has to be swept first. Nothing was added.
	Full
	// NoMemory: the batch has to be swept, and memory to be waited for. Nothing was added.
	NoMemory
)

// Event is what counts of a record.
type Event struct {
	Offset     int64
	User       []byte
	Name       []byte // what the member wants to be called; nil: it doesn't say, or names aren't counted
	Hash       uint64 // of User
	Boards     [][]byte
	Points     int64
	Tuples     []boardrules.Tuple // of boards by other rules, in the order of Boards; nil where all are by the default rule
	Time       int64              // ms
	RecordTime int64              // ms
}

// Batch is the folded events of one partition over [From, To), of all shards. It is used by
// one goroutine at a time; once it is folded, Pieces of several shards may read it side by
// side, while nobody is taken out.
type Batch struct {
	table   table
	targets targets

	from, to int64
	rules    ledger.Fingerprint // for the positions within its sweep
	shards   ledger.Shards
	stands   []stand
	level    bool   // from the first offset on, no shard has anything yet
	high     uint64 // members from here on are left; 0: none are
	resumed  bool
	pending  int64 // events of refused members that are to be found again
}

// stand is what a shard has already as the batch begins.
type stand struct {
	from     int64  // events before are in
	low      uint64 // members below have been swept
	repeated uint64 // of those, the ones below were swept before this owner came
	through  bool   // all have been swept, by this owner
	out      bool   // the reading isn't for it
}

// New makes a batch that may hold limit bytes; Reset makes it ready for use, and
// for use again.
func New(rules *Rules, memory Memory, limit int64) *Batch {
	return &Batch{
		table:   table{memory: memory, limit: limit, most: widest},
		targets: targets{rules: rules, byRules: numbered(rules)},
	}
}

// Leaves has the batch leave out what is sealed, from its next Reset on.
func (b *Batch) Leaves(s *Sealed) { b.targets.sealing = s }

// By has the batch fold by these rules once it is Reset.
func (b *Batch) By(rules *Rules) { b.targets.by(rules) }

// Reset empties the batch and starts it at an offset of a reading. began is where the shards
// stood as this owner began the reading: what they had by then counts as repeated. at is where
// they stand now, which is further on where a sweep is read several times.
func (b *Batch) Reset(from int64, r ledger.Reading, began, at ledger.Positions) {
	b.Release()
	b.table.naming = b.targets.rules.Names
	b.from, b.to, b.rules = from, from, r.Rules
	b.shards, b.stands = ledger.Shards(len(at)), b.stands[:0]
	b.high, b.resumed, b.level, b.pending = 0, r.Resumes(), true, 0
	for i, p := range began {
		s := stand{from: p.From, repeated: p.Hash, out: !r.For(i)}
		s.low, s.through = at[i].Hash, p != at[i] && !at[i].Sweeping()
		b.level = b.level && p.From <= from && !p.Sweeping() && !s.out
		b.stands = append(b.stands, s)
	}
	b.targets.others, b.targets.shards = int64(len(at)-1), b.shards
}

// Release gives all memory back, and keeps no more of it than any batch needs.
func (b *Batch) Release() {
	b.table.release()
	b.targets.reset()
}

// Add folds one event. It returns an *UnsettledError if the event must be added again once the borders
// of its windows are settled, and another error if the event's time is in no window of a calendar.
func (b *Batch) Add(e *Event) (Result, error) {
	span, taken, err := b.targets.take(e.Boards, e.Hash, e.Offset, e.Time, e.RecordTime)
	if err != nil {
		return 0, err
	}
	if span.unsettled != nil && e.RecordTime <= span.near {
		b.targets.spans, b.targets.lastSpan = nil, 0
		return 0, &UnsettledError{span.unsettled}
	}
	if taken == 0 {
		return span.left(b.targets.rules.PeriodsOf(e.Boards)), nil
	}
	if !b.level {
		if r := b.has(e); r != Added {
			return r, nil
		}
	}
	if e.Name == nil || !b.table.naming {
		return b.addTo(e, span, taken), nil
	}
	if r := b.table.roomForText(len(e.User) + len(e.Name)); r != Added {
		return r, nil
	}
	r := b.addTo(e, span, taken)
	if r == Added {
		b.name(e)
	}
	return r, nil
}

// addTo folds an event that is to be counted.
func (b *Batch) addTo(e *Event, span *span, taken uint32) Result {
	if e.Tuples != nil {
		return b.addByRules(e, span, taken)
	}
	target, r := b.targets.of(&b.table, span, taken, e.Boards)
	if r != Added {
		return r
	}
	time := int64(ledger.NoTime)
	if e.Points > 0 {
		time = e.Time
	}
	return b.add(e.Hash, e.User, target, e.Points, time)
}

// has is Added for an event that isn't in yet, and is to be added.
func (b *Batch) has(e *Event) Result {
	switch s := &b.stands[b.shards.Of(e.Hash)]; {
	case e.Offset < s.from, e.Hash < s.repeated:
		return Repeated
	case s.out:
		return Elsewhere
	case s.through, e.Hash < s.low: // swept after this owner's last reading
		return Left
	case b.high != 0 && e.Hash >= b.high:
		return Left
	}
	return Added
}

// Duplicate notes an event that counts as nothing, as far as Add would have folded it, so that
// it isn't taken for one that was. It is of offsets that ascend.
func (b *Batch) Duplicate(e *Event) Result {
	if !b.level {
		if r := b.has(e); r != Added {
			return r
		}
	}
	return b.table.noteDuplicate(e.Offset)
}

func (b *Batch) add(hash uint64, id []byte, target int32, points, time int64) Result {
	t := &b.table
	f := t.find(hash, id)
	if f.at < 0 {
		if f.alike && !b.fits(hash, *f.head, b.targets.width(target)) {
			return Full
		}
		return t.insert(f, hash, id, target, points, time)
	}
	m := t.member(f.at)
	if m.events == math.MaxUint32 {
		return Full
	}
	t.last = f.at
	if m.target == target {
		m.points, m.time = addPoints(m.points, points), later(m.time, time)
		m.events++
		return Added
	}
	for i := m.more; i != 0; {
		c := t.change(int(i - 1))
		if c.target == target {
			c.points, c.time = addPoints(c.points, points), later(c.time, time)
			m.events++
			return Added
		}
		i = c.next
	}
	if !b.fits(hash, *f.head, b.targets.width(target)) {
		return Full
	}
	return t.addChange(f.at, target, points, time)
}

// fits reports whether a hash's changes stay within what one piece may carry
// with more of this width. A sweep that is taken over has its end already.
func (b *Batch) fits(hash uint64, chain int32, width int) bool {
	if b.resumed {
		return true
	}
	t, sum := &b.table, width
	i, adjacent := t.ofHash(hash, chain)
	for i != 0 {
		m := t.member(int(i - 1))
		if m.hash == hash {
			sum += b.width(m)
		} else if adjacent {
			break
		}
		i = m.next
	}
	return sum <= maxPerHash
}

// width is the most that a member's changes take, in member-windows.
func (b *Batch) width(m *member) int {
	n := b.targets.width(m.target)
	for i := m.more; i != 0; {
		c := b.table.change(int(i - 1))
		n += b.targets.width(c.target)
		i = c.next
	}
	return n
}

// Left reports whether no window takes an event of a member's hash, as Add would find.
func (b *Batch) Left(boards [][]byte, hash uint64, offset, time, recordTime int64) (bool, error) {
	_, taken, err := b.targets.take(boards, hash, offset, time, recordTime)
	return taken == 0, err
}

// Halve empties a batch that resumes a sweep and leaves the upper half of what
// it held to another reading: it is for the owner whose memory can't hold the
// sweep that it took over, whose end is fixed. The reading has to start again.
// It reports false where all members have one hash.
func (b *Batch) Halve() bool {
	var w walk
	w.reset(&b.table)
	first, seen := uint64(0), 0
	for i := w.peek(); i >= 0; i = w.peek() {
		h := b.table.member(i).hash
		if seen == 0 {
			first = h
		}
		if seen >= b.table.count/2 && h > first {
			b.high, b.level = h, false
			b.Release()
			return true
		}
		seen++
		w.next()
	}
	return false
}

// Below leaves the members from a hash on to another, so that a batch that resumes a
// sweep ends at that hash. Zero leaves nobody.
func (b *Batch) Below(hash uint64) { b.high, b.level = hash, b.level && hash == 0 }

// MoveTo sets the end of the batch: the offset that is to be read next.
func (b *Batch) MoveTo(offset int64) { b.to = offset }

// From is the batch's first offset.
func (b *Batch) From() int64 { return b.from }

// To is the offset after the batch.
func (b *Batch) To() int64 { return b.to }

// Of reports whether the batch has every event of its range for a shard that the shard
// doesn't have yet: its reading is for it.
func (b *Batch) Of(shard int) bool { return !b.stands[shard].out }

// For reports whether it can have anything for a shard, from where that stands.
func (b *Batch) For(shard int, at ledger.Position) bool { return b.Of(shard) && at.From < b.to }

// End is the position that the last piece of a shard writes, from where the shard stands: that
// one itself, where the batch has nothing for it.
func (b *Batch) End(shard int, at ledger.Position) ledger.Position {
	low, high := b.shards.From(shard), b.shards.From(shard+1)
	switch {
	case !b.For(shard, at):
		return at
	case b.high == 0, high != 0 && high <= b.high:
		return ledger.At(b.to)
	case b.high <= max(low, at.Hash):
		return at
	}
	return ledger.Position{From: at.From, To: b.to, Hash: b.high, Rules: b.rules}
}

// Ends are the ends of all shards, from where they stand.
func (b *Batch) Ends(at ledger.Positions) ledger.Positions {
	all := make(ledger.Positions, len(at))
	for i, p := range at {
		all[i] = b.End(i, p)
	}
	return all
}

// Cut reports whether members are left to another reading.
func (b *Batch) Cut() bool { return b.high != 0 }

// Resumed reports whether the batch goes on with a sweep that was begun before.
func (b *Batch) Resumed() bool { return b.resumed }

// Members is the number of members with changes.
func (b *Batch) Members() int { return b.table.count }

// Held is the memory that the batch holds, in bytes.
func (b *Batch) Held() int64 { return b.table.held }
