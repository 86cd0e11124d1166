package fold

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/standings/standings/internal/ledger"
)

// The table holds the sums of a batch's members. It finds a member by hash and id, and reads members out in the
// order of their hashes.
//
// It is a linear hash table. A bucket's address is the first bits of the hash, reversed, so that a split halves
// the bucket's range of hashes. This has three advantages. The table grows by one bucket at a time, so it never
// needs twice its memory. Walking the buckets in order walks the hashes in order, so a sweep needs no sort. And
// its chunks have no pointers: they go back to a pool, and the garbage collector does not scan them.

const (
	memberChunk = 512     // members
	changeChunk = 512     // changes
	bucketChunk = 1024    // buckets
	idChunk     = 1 << 14 // bytes
	offsetChunk = 512     // offsets

	memberBytes = memberChunk * 48
	changeBytes = changeChunk * 24
	bucketBytes = bucketChunk * 4
	offsetBytes = offsetChunk * 8

	firstLevel = 6 // 64 buckets
)

// bounds are the limits that the widths of the indexes set: a batch that reaches one ends.
type bounds struct {
	members, changes int // int32, plus one
	idChunks         int // at most 4 GiB of ids
}

var widest = bounds{members: math.MaxInt32, changes: math.MaxInt32, idChunks: (1 << 32) / idChunk}

// member is one member and its first change. Most members have only one.
type member struct {
	hash    uint64
	points  int64
	time    int64
	events  uint32
	id      uint32 // the chunk and offset of its id
	next    int32  // the next member in the bucket, plus one
	more    int32  // its further changes, plus one
	target  int32
	idLen   uint16
	refused uint8 // a ledger.Reason, with or without pending; 0: not refused
}

// change is the sum of a member for a further target.
type change struct {
	points int64
	time   int64
	target int32
	next   int32 // plus one
}

var (
	memberPool = sync.Pool{New: func() any { return new([memberChunk]member) }}
	changePool = sync.Pool{New: func() any { return new([changeChunk]change) }}
	bucketPool = sync.Pool{New: func() any { return new([bucketChunk]int32) }}
	idPool     = sync.Pool{New: func() any { return new([idChunk]byte) }}
	namePool   = sync.Pool{New: func() any { return new(namesOf) }}
	offsetPool = sync.Pool{New: func() any { return new([offsetChunk]int64) }}
)

// Memory grants or refuses bytes. It never blocks.
type Memory interface {
	Take(n int64) bool
	Release(n int64)
}

type table struct {
	account
	index
	texts
	repeats

	members []*[memberChunk]member
	count   int
	changes []*[changeChunk]change
	extra   int
	last    int // the member that the last event was added to
}

// account is the memory that a table charges.
type account struct {
	memory Memory
	limit  int64 // bytes that one batch may hold
	most   bounds
	held   int64
}

// index finds members by their hashes: see address.
type index struct {
	buckets []*[bucketChunk]int32
	level   uint
	split   int
	crowds  crowds
}

// texts are the ids and the display names of members.
type texts struct {
	ids    []*[idChunk]byte
	idUsed int // bytes used in the last chunk

	naming             bool       // events give members their display names
	names, changeNames []*namesOf // parallel to members and changes; empty without naming
}

// repeats are the offsets of duplicates, ascending.
type repeats struct {
	duplicates     []*[offsetChunk]int64
	duplicateCount int
}

func (t *table) take(n int64) Result {
	if t.held+n > t.limit {
		return Full
	}
	if !t.memory.Take(n) {
		return NoMemory
	}
	t.held += n
	return Added
}

func (t *table) member(i int) *member { return &t.members[i/memberChunk][i%memberChunk] }
func (t *table) change(i int) *change { return &t.changes[i/changeChunk][i%changeChunk] }
func (t *table) bucket(i int) *int32  { return &t.buckets[i/bucketChunk][i%bucketChunk] }

func (t *table) id(m *member) []byte {
	at := int(m.id % idChunk)
	return t.ids[m.id/idChunk][at : at+int(m.idLen) : at+int(m.idLen)]
}

// text returns the n bytes that place stored at this place.
func (t *table) text(at uint32, n uint16) []byte {
	if n == 0 {
		return nil
	}
	from := int(at % idChunk)
	return t.ids[at/idChunk][from : from+int(n) : from+int(n)]
}

func (t *table) bucketCount() int { return 1<<t.level + t.split }

// found is a member's place, or the place for a new one. One walk through the chain finds everything that
// insert needs.
type found struct {
	at   int    // its index, or -1
	head *int32 // the first of its bucket, plus one; nil if there are no buckets yet
	// The place for a new member: at the end, because members that came earlier have more events.
	end   *int32
	chain int  // members in the chain, at most crowd
	alike bool // one of them has the same hash
}

func (t *table) find(hash uint64, id []byte) found {
	if len(t.buckets) == 0 {
		return found{at: -1}
	}
	head := t.bucket(t.address(hash))
	end, n, alike := head, 0, false
	for i := *head; i != 0; n++ {
		if n == crowd {
			return t.findInCrowd(head, hash, id)
		}
		m := t.member(int(i - 1))
		if m.hash == hash {
			if bytes.Equal(t.id(m), id) {
				return found{at: int(i - 1), head: head}
			}
			alike = true
		}
		end, i = &m.next, m.next
	}
	return found{at: -1, head: head, end: end, chain: n, alike: alike}
}

// insert adds a member that was not found. It reserves all memory before it changes anything.
func (t *table) insert(f found, hash uint64, id []byte, target int32, points, time int64) Result {
	if t.count == t.most.members {
		return Full
	}
	if len(t.buckets) == 0 {
		if r := t.grow(); r != Added {
			return r
		}
		f.head = t.bucket(t.address(hash))
		f.end = f.head
	}
	if t.count == len(t.members)*memberChunk {
		if r := t.take(memberBytes + t.nameBytes()); r != Added {
			return r
		}
		t.members = append(t.members, memberPool.Get().(*[memberChunk]member))
		t.names = t.moreNames(t.names)
	}
	if r := t.roomForText(len(id)); r != Added {
		return r
	}
	crowded := f.chain == crowd
	if crowded {
		if r := t.makeRoom(f.head, hash); r != Added {
			return r
		}
	}
	*t.member(t.count) = member{
		hash: hash, points: points, time: time, events: 1, target: target,
		id: t.place(id), idLen: uint16(len(id)),
	}
	t.last = t.count
	t.count++
	if crowded {
		t.join(f.head, t.count-1)
	} else {
		*f.end = int32(t.count)
	}
	// At most two splits, so that the table catches up after it had no memory for a split.
	for range 2 {
		if t.count <= t.bucketCount() || !t.splitOne() {
			break
		}
	}
	return Added
}

// roomForText makes room for n bytes at the end of the last chunk.
func (t *table) roomForText(n int) Result {
	if len(t.ids) > 0 && t.idUsed+n <= idChunk {
		return Added
	}
	if len(t.ids) == t.most.idChunks {
		return Full
	}
	if r := t.take(idChunk); r != Added {
		return r
	}
	t.ids = append(t.ids, idPool.Get().(*[idChunk]byte))
	t.idUsed = 0
	return Added
}

// nameBytes returns the bytes that the names of a chunk of members or changes take.
func (t *table) nameBytes() int64 {
	if t.naming {
		return nameBytes
	}
	return 0
}

// moreNames adds a chunk of names. The caller has reserved its memory.
func (t *table) moreNames(names []*namesOf) []*namesOf {
	if !t.naming {
		return names
	}
	chunk := namePool.Get().(*namesOf)
	clear(chunk[:])
	return append(names, chunk)
}

// place copies an id or a name to the end of the last chunk, which has room for it.
func (t *table) place(id []byte) uint32 {
	at := uint32((len(t.ids)-1)*idChunk + t.idUsed)
	copy(t.ids[len(t.ids)-1][t.idUsed:], id)
	t.idUsed += len(id)
	return at
}

// addChange adds an event of another target to a member.
func (t *table) addChange(at int, target int32, points, time int64) Result {
	if r := t.reserve(1); r != Added {
		return r
	}
	t.link(at, target, points, time)
	t.member(at).events++
	return Added
}

// link adds a change to a member. The caller has reserved room for it.
func (t *table) link(at int, target int32, points, time int64) {
	m := t.member(at)
	*t.change(t.extra) = change{points: points, time: time, target: target, next: m.more}
	t.extra++
	m.more = int32(t.extra)
}

// reserve makes room for n changes, fewer than a chunk has.
func (t *table) reserve(n int) Result {
	if t.extra+n > t.most.changes {
		return Full
	}
	if t.extra+n > len(t.changes)*changeChunk {
		if r := t.take(changeBytes + t.nameBytes()); r != Added {
			return r
		}
		t.changes = append(t.changes, changePool.Get().(*[changeChunk]change))
		t.changeNames = t.moreNames(t.changeNames)
	}
	return Added
}

// noteDuplicate records the offset of an event that is not folded.
func (t *table) noteDuplicate(offset int64) Result {
	if t.duplicateCount == len(t.duplicates)*offsetChunk {
		if r := t.take(offsetBytes); r != Added {
			return r
		}
		t.duplicates = append(t.duplicates, offsetPool.Get().(*[offsetChunk]int64))
	}
	t.duplicates[t.duplicateCount/offsetChunk][t.duplicateCount%offsetChunk] = offset
	t.duplicateCount++
	return Added
}

func (t *table) isDuplicate(offset int64) bool {
	_, found := sort.Find(t.duplicateCount, func(i int) int {
		return cmp.Compare(offset, t.duplicates[i/offsetChunk][i%offsetChunk])
	})
	return found
}

// addPoints adds points. A sum that leaves the range of 64 bits stays beyond it: no layout can hold it, and a
// wrapped sum would look valid.
func addPoints(a, b int64) int64 {
	if a == beyond || b == beyond {
		return beyond
	}
	s := a + b
	if (a^s)&(b^s) < 0 {
		return beyond
	}
	return s
}

const beyond = math.MaxInt64

// later returns the later time of two events. An event without positive points has no time.
func later(a, b int64) int64 { return max(a, b, ledger.NoTime) }

func (t *table) release() {
	for _, c := range t.members {
		memberPool.Put(c)
	}
	for _, c := range t.changes {
		changePool.Put(c)
	}
	for _, c := range t.buckets {
		bucketPool.Put(c)
	}
	for _, c := range t.ids {
		idPool.Put(c)
	}
	for _, c := range slices.Concat(t.names, t.changeNames) {
		namePool.Put(c)
	}
	for _, c := range t.duplicates {
		offsetPool.Put(c)
	}
	t.memory.Release(t.held)
	*t = table{
		account: account{memory: t.memory, limit: t.limit, most: t.most},
		index:   index{buckets: emptied(t.buckets)},
		texts:   texts{ids: emptied(t.ids), names: emptied(t.names), changeNames: emptied(t.changeNames)},
		repeats: repeats{duplicates: emptied(t.duplicates)},
		members: emptied(t.members), changes: emptied(t.changes),
	}
}
