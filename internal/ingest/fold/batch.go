// Package fold sums the events of one partition into a batch until the batch is swept. The fewer updates an
// event costs, the faster a consumer that is behind catches up.
//
//	events ──▶ targets ──▶ table ──▶ pieces
//	           (the windows  (member,   (in the order of their
//	           they count    change →   members' hashes)
//	           in)           points,
//	                         time)
//
// Memory bounds a batch. Two other limits end one early: the changes of one hash may take at most a thousand
// member-windows, because a piece holds at least one whole hash; and the indexes of members, changes and ids
// have a fixed width. Ids chosen to have similar hashes do not bound a batch: see crowds.
package fold

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ledger"
	boardrules "github.com/standings/standings/internal/rules"
)

// Hash returns the hash of a member's id (xxHash64). A sweep proceeds in the order of these hashes.
func Hash(id []byte) uint64 { return xxhash.Sum64(id) }

// maxPerHash is the maximum number of member-windows that the changes of one hash may take.
const maxPerHash = 1000

// Result is the outcome of folding an event.
type Result int

const (
	// Added: the event was added to its member's sum.
	Added Result = iota
	// Late: every window that could take the event has closed.
	Late
	// Early: the event's time is before the first window of every period.
	Early
	// Repeated: the event's member was swept before the batch's start position.
	Repeated
	// Left: another reading counts the event. That reading starts at the hash at which this one ends.
	Left
	// Elsewhere: this reading does not serve the event's shard. Another reading counts the event, also as a
	// record.
	Elsewhere
	// Full: the batch must be swept first. Nothing was added.
	Full
	// NoMemory: the batch must be swept, and the worker must wait for memory. Nothing was added.
	NoMemory
)

// Event is the part of a record that is folded.
type Event struct {
	Offset     int64
	User       []byte
	Name       []byte // the member's display name; nil if the event has none, or names are not counted
	Hash       uint64 // of User
	Boards     [][]byte
	Points     int64
	Tuples     []boardrules.Tuple // by board, for boards with other rules; nil if all have the default rule
	Time       int64              // ms
	RecordTime int64              // ms
}

// Batch holds the folded events of one partition over [From, To), of all shards. One goroutine at a time uses
// it. Once it is folded, the Pieces of several shards may read it concurrently, as long as no member is refused
// meanwhile.
type Batch struct {
	table   table
	targets targets

	from, to int64
	rules    ledger.Fingerprint // for the positions inside its sweep
	shards   ledger.Shards
	stands   []stand
	level    bool   // no shard has counted any event from the first offset on
	high     uint64 // members with this hash or a higher one are left to another reading; 0: none
	resumed  bool
	pending  int64 // events of refused members that have not been found again yet
}

// stand describes the events that a shard has already counted when the batch starts.
type stand struct {
	from     int64  // events before this offset are counted
	low      uint64 // members with lower hashes have been swept
	repeated uint64 // of those, members with hashes below this were swept before this owner took over
	through  bool   // all members have been swept, by this owner
	out      bool   // the reading does not serve this shard
}

// New returns a batch that may hold at most limit bytes. Reset must be called before each use.
func New(rules *Rules, memory Memory, limit int64) *Batch {
	return &Batch{
		table:   table{account: account{memory: memory, limit: limit, most: widest}},
		targets: targets{rules: rules, byRules: numbered(rules)},
	}
}

// Leaves makes the batch leave out the windows in s, from its next Reset on.
func (b *Batch) Leaves(s *Sealed) { b.targets.sealing = s }

// By makes the batch use these rules. It takes effect at the next Reset.
func (b *Batch) By(rules *Rules) { b.targets.by(rules) }

// Reset empties the batch and starts it at an offset of a reading. began has the shards' positions when this
// owner started the reading: what they had counted by then is Repeated. at has their present positions, which
// are higher if a sweep is read in several passes.
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

// Release returns all memory, except the small buffers that every batch needs.
func (b *Batch) Release() {
	b.table.release()
	b.targets.reset()
}

// Add folds one event. It returns an *UnsettledError if the borders of the event's windows must be settled
// first; the caller then adds the event again. It returns another error if a calendar has no window for the
// event's time.
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

// addTo folds an event that counts.
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

// has returns Added if the event is not counted yet and this reading must count it.
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

// Duplicate records a duplicate, so that Pending does not take it for a counted event. It returns the same
// results as Add. Offsets must ascend.
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

// fits reports whether a hash's changes stay within the limit of one piece if width member-windows are added. A
// resumed sweep has a fixed end, so the limit does not apply to it.
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

// width returns the maximum number of member-windows that a member's changes take.
func (b *Batch) width(m *member) int {
	n := b.targets.width(m.target)
	for i := m.more; i != 0; {
		c := b.table.change(int(i - 1))
		n += b.targets.width(c.target)
		i = c.next
	}
	return n
}

// Left reports whether no window takes an event of a member with this hash, as Add would decide.
func (b *Batch) Left(boards [][]byte, hash uint64, offset, time, recordTime int64) (bool, error) {
	_, taken, err := b.targets.take(boards, hash, offset, time, recordTime)
	return taken == 0, err
}

// Halve empties a batch that resumes a sweep, and leaves the upper half of its members to another reading. A
// worker calls it if its memory cannot hold the sweep that it took over, because the end of that sweep is
// fixed. The reading must then start again. Halve reports false if all members have the same hash.
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

// Below leaves the members with this hash or a higher one to another reading, so that a batch that resumes a
// sweep ends at that hash. Zero leaves no members.
func (b *Batch) Below(hash uint64) { b.high, b.level = hash, b.level && hash == 0 }

// MoveTo sets the end of the batch: the next offset to read.
func (b *Batch) MoveTo(offset int64) { b.to = offset }

// From returns the batch's first offset.
func (b *Batch) From() int64 { return b.from }

// To returns the offset after the batch.
func (b *Batch) To() int64 { return b.to }

// Of reports whether the batch's reading serves the shard: the batch then has every event of its range that the
// shard has not counted yet.
func (b *Batch) Of(shard int) bool { return !b.stands[shard].out }

// For reports whether the batch can have changes for a shard that is at this position.
func (b *Batch) For(shard int, at ledger.Position) bool { return b.Of(shard) && at.From < b.to }

// End returns the position that the last piece of a shard writes, given the shard's present position. It
// returns that position unchanged if the batch has nothing for the shard.
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

// Ends returns the end of every shard, given the shards' present positions.
func (b *Batch) Ends(at ledger.Positions) ledger.Positions {
	all := make(ledger.Positions, len(at))
	for i, p := range at {
		all[i] = b.End(i, p)
	}
	return all
}

// Cut reports whether some members are left to another reading.
func (b *Batch) Cut() bool { return b.high != 0 }

// Resumed reports whether the batch continues a sweep that was started before.
func (b *Batch) Resumed() bool { return b.resumed }

// Members returns the number of members with changes.
func (b *Batch) Members() int { return b.table.count }

// Held returns the memory that the batch holds, in bytes.
func (b *Batch) Held() int64 { return b.table.held }
