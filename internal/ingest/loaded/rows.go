// Package loaded remembers, of rows that were loaded from a snapshot, as of which instant each is.
//
// Not of all rows: of those that events come for whose counting depends on it. So it is filled twice:
//
//	the log between the snapshot's first and last position ─▶ Add: who has events, in which windows
//	the snapshot's pages                                   ─▶ Set: the instant of those rows
//	the fold                                               ─▶ Instant, of each such event
//
// A member and a window take 20 bytes and the room of an open table, whatever the member's id: what is
// kept of it is a hash of 128 bits, for which nobody finds two members (see package duplicates, whose
// ids are made alike). Where that is more than it may take, how much it would take is estimated.
package loaded

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
)

// Key stands for a member's id: 128 bits of its SHA-256.
type Key struct{ a, b uint64 }

// KeyOf is the key of a member, by its id.
func KeyOf(member []byte) Key {
	sum := sha256.Sum256(member)
	return Key{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// Instant says of a row as of which instant it is, by a number from 0 on.
type Instant int32

const (
	// NoRow: no page has the member in that window.
	NoRow Instant = -1
	// Unknown: nothing was added for it.
	Unknown Instant = -2
)

const (
	parts     = 64 // of the table: one grows at a time
	entry     = 20 // bytes
	firstSize = 16 // of a part
	// Most is the most instants there may be.
	Most = math.MaxInt32 - 2
)

// Rows are those that events come for. Adding and setting is safe for concurrent use; Instant is once
// that is through.
type Rows struct {
	budget int64 // bytes

	mu      sync.Mutex
	windows map[window]uint64 // their numbers, from 1
	parts   [parts]part
	taken   int64 // bytes
	over    *sketch
	// Where a key goes is nobody's to know: who could choose ids by that would make them collide.
	seed [2]uint64
}

type window struct{ board, period, name string }

// part is a table of open addressing.
type part struct {
	keys     []Key
	instants []uint32 // instant and 2; 1: no row; 0: free
	held     int
}

// New makes rows that may take so many bytes.
func New(budget int64) *Rows {
	return &Rows{
		budget: budget, windows: map[window]uint64{},
		seed: [2]uint64{rand.Uint64(), rand.Uint64()}, //nolint:gosec // unknown to whoever publishes, no secret
	}
}

// Number is that of a window, or 0 where nothing was added for it.
func (r *Rows) Number(board []byte, period, name string) uint64 {
	return r.windows[window{string(board), period, name}]
}

// NumberFor is Number, and gives it one.
func (r *Rows) NumberFor(board, period, name string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := window{board, period, name}
	n, ok := r.windows[w]
	if !ok {
		n = uint64(len(r.windows)) + 1
		r.windows[w] = n
	}
	return n
}

// of is the key of a member in a window.
func (k Key) of(window uint64) Key { return Key{k.a, k.b + window*0x9e3779b97f4a7c15} }

// Add notes that a member has events in a window.
func (r *Rows) Add(k Key, window uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k = k.of(window)
	if r.over != nil {
		r.over.add(r.home(k))
		return
	}
	p, home := r.part(k)
	at, found := p.find(k, home)
	if found {
		return
	}
	if 4*(p.held+1) > 3*len(p.keys) {
		if size := max(firstSize, 2*len(p.keys)); !r.grow(p, size) {
			r.estimate()
			r.over.add(r.home(k))
			return
		}
		at, _ = p.find(k, home)
	}
	p.keys[at], p.instants[at] = k, 1
	p.held++
}

// Set says as of which instant a row is, the latest one that it is called with. Of a row that nothing
// was added for nothing is kept.
func (r *Rows) Set(k Key, window uint64, instant Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k = k.of(window)
	p, home := r.part(k)
	if at, found := p.find(k, home); found {
		p.instants[at] = uint32(instant + 2) //nolint:gosec // 0 to Most
	}
}

// Instant is that of a member's row in a window.
func (r *Rows) Instant(k Key, window uint64) Instant {
	k = k.of(window)
	p, home := r.part(k)
	at, found := p.find(k, home)
	if !found {
		return Unknown
	}
	return Instant(p.instants[at]) - 2 //nolint:gosec // as Set has it
}

// Held is how many rows are remembered.
func (r *Rows) Held() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.parts {
		n += r.parts[i].held
	}
	return n
}

// Needs is how many bytes it takes, and whether it may: where it may not, it has forgotten all, and
// that is an estimate.
func (r *Rows) Needs() (bytes int64, fits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over == nil {
		return r.taken, true
	}
	// A part that has just grown is three eighths full.
	return int64(r.over.estimate() * entry * 8 / 3), false
}

func (r *Rows) home(k Key) uint64 {
	high, low := bits.Mul64(k.a^r.seed[0], k.b^r.seed[1])
	high, low = bits.Mul64(high^low^r.seed[1], r.seed[0]|1)
	return high ^ low
}

func (r *Rows) part(k Key) (*part, uint64) {
	home := r.home(k)
	return &r.parts[home%parts], home / parts
}

// find is where a key is in the part, or where it would go.
func (p *part) find(k Key, home uint64) (at int, found bool) {
	if len(p.keys) == 0 {
		return 0, false
	}
	mask := len(p.keys) - 1
	for at = int(home) & mask; p.instants[at] != 0; at = (at + 1) & mask { //nolint:gosec // its low bits
		if p.keys[at] == k {
			return at, true
		}
	}
	return at, false
}

// grow makes a part larger, if there is room for both.
func (r *Rows) grow(p *part, size int) bool {
	more := int64(size) * entry
	if r.taken+more > r.budget {
		return false
	}
	was := *p
	*p = part{keys: make([]Key, size), instants: make([]uint32, size), held: was.held}
	for i, k := range was.keys {
		if was.instants[i] != 0 {
			at, _ := p.find(k, r.home(k)/parts)
			p.keys[at], p.instants[at] = k, was.instants[i]
		}
	}
	r.taken += more - int64(len(was.keys))*entry
	return true
}

// estimate forgets all, and counts from now on.
func (r *Rows) estimate() {
	r.over = &sketch{}
	for i := range r.parts {
		p := &r.parts[i]
		for j, k := range p.keys {
			if p.instants[j] != 0 {
				r.over.add(r.home(k))
			}
		}
		*p = part{}
	}
	r.taken = 0
}
