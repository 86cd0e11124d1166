package fold

import (
	"cmp"
	"slices"

	"github.com/standings/standings/internal/ledger"
)

// Pieces cuts a batch's changes for one shard into pieces, in the order of the members' hashes.
type Pieces struct {
	batch   *Batch
	shard   int
	end     uint64 // the lowest hash of the next shard; 0 for the last shard
	walk    walk
	stood   ledger.Position // the first piece's expected position
	at      ledger.Position // the next piece's expected position
	piece   ledger.Piece
	events  int64
	refused [ledger.Reasons]int64
	done    bool
	names   bool

	grouping
}

// grouping is room for grouping a piece's changes by their windows, kept from one piece to the next.
type grouping struct {
	groupOf  []int32          // set → its group in the piece, plus one
	others   map[string]int32 // the same for sets that no event has
	windowOf []int32          // window → its number in the piece, plus one
	room     int              // elements that the groups have room for
	sums     []sum
	set      []int32
	text     []byte // a set as a map key
}

// sum is the change of one member in one window.
type sum struct {
	window       int32
	points, time int64
	rule         int32  // its number in targets.numbered: values of different rules are not comparable
	name         *named // the member's, from its events in the window; nil if none has one
}

// Reset starts to cut a batch's changes for a shard that is at this position.
func (p *Pieces) Reset(b *Batch, partition ledger.Partition, shard int, at ledger.Position) {
	p.batch, p.shard, p.end = b, shard, b.shards.From(shard+1)
	p.stood, p.piece.Partition = at, partition
	p.piece.Without = b.targets.without(shard)
	p.walk.reset(&b.table)
	p.Rewind(at)
}

// Rewind returns to a position between two pieces and cuts again from there.
func (p *Pieces) Rewind(at ledger.Position) {
	p.at, p.done = at, false
	p.walk.seek(max(at.Hash, p.batch.shards.From(p.shard)))
}

// Any reports whether the rest of the batch has anything to send: members, or windows that are left out.
func (p *Pieces) Any() bool { return len(p.piece.Without) > 0 || p.peek() >= 0 }

// peek returns the shard's next member, or -1.
func (p *Pieces) peek() int {
	i := p.walk.peek()
	if i >= 0 && p.end != 0 && p.batch.table.member(i).hash >= p.end {
		return -1
	}
	return i
}

// Refused returns the number of the piece's events whose members are refused, by reason. The count that Next
// returns includes these events; the piece does not contain their members.
func (p *Pieces) Refused() [ledger.Reasons]int64 { return p.refused }

// Next returns the next piece and the number of events in it, or false after the last piece. A piece takes
// about width member-windows, but contains at least one hash. A batch without members is one piece, which moves
// the position. The piece is valid until the next call and until the batch is released.
func (p *Pieces) Next(width int) (*ledger.Piece, int64, bool) {
	if p.done {
		return nil, 0, false
	}
	p.begin()
	used, last := 0, uint64(0)
	i := p.peek()
	for ; i >= 0; i = p.peek() {
		m := p.batch.table.member(i)
		if m.refused == 0 {
			if used > 0 && m.hash != last && used+p.batch.width(m) > width {
				break
			}
			used += p.take(i)
		} else {
			p.refused[m.reason()] += int64(m.events)
		}
		p.events += int64(m.events)
		last = m.hash
		p.walk.next()
	}
	p.piece.Expected = p.at
	if i < 0 {
		p.done = true
		p.piece.Next = p.batch.End(p.shard, p.stood)
	} else {
		p.piece.Next = ledger.Position{From: p.stood.From, To: p.batch.to, Hash: p.batch.table.member(i).hash, Rules: p.batch.rules}
	}
	p.at = p.piece.Next
	return &p.piece, p.events, true
}

// Release frees the buffers of a large batch, since the next batch may start much later.
func (p *Pieces) Release() {
	p.walk = walk{run: emptied(p.walk.run)}
	p.batch, p.piece.Without = nil, nil
	if p.room > kept {
		p.piece.Groups, p.room = nil, 0
	}
	p.others = cleared(p.others)
	p.groupOf, p.windowOf, p.piece.Windows = emptied(p.groupOf), emptied(p.windowOf), emptied(p.piece.Windows)
	p.sums, p.set, p.text = emptied(p.sums), emptied(p.set), emptied(p.text)
}

// mostRoom is the maximum number of elements for which the groups of a piece keep room until the next piece.
// Without a limit every group could grow large during a batch, because a different group may be the large one
// in each piece.
const mostRoom = 1 << 14

func (p *Pieces) begin() {
	p.events, p.refused = 0, [ledger.Reasons]int64{}
	if p.room > mostRoom {
		p.piece.Groups, p.room = nil, 0
	}
	p.others = cleared(p.others)
	p.names = p.batch.table.naming
	for i := range p.piece.Groups {
		g := &p.piece.Groups[i]
		g.Members, g.Windows, g.Names = g.Members[:0], g.Windows[:0], g.Names[:0]
	}
	p.piece.Groups, p.piece.Windows = p.piece.Groups[:0], p.piece.Windows[:0]
	p.groupOf, p.windowOf = zeros(p.groupOf, len(p.batch.targets.sets)), zeros(p.windowOf, len(p.batch.targets.windows))
}

func zeros(s []int32, n int) []int32 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// take adds a member to the piece and returns its member-windows.
func (p *Pieces) take(i int) int {
	m := p.batch.table.member(i)
	id := p.batch.table.id(m)
	if m.more == 0 {
		p.put(m.target, ledger.Member{ID: id, Points: m.points, Time: m.time}, p.nameOf(i, first))
		return p.batch.targets.width(m.target)
	}
	p.add(i)
	for rest := p.sums; len(rest) > 0; {
		first, run := rest[0], 1
		for run < len(rest) && p.alike(&rest[run], &first) {
			run++
		}
		p.set = p.set[:0]
		for _, s := range rest[:run] {
			p.set = append(p.set, s.window)
		}
		p.putPart(p.set, ledger.Member{ID: id, Points: first.points, Time: first.time}, first.name)
		rest = rest[run:]
	}
	return len(p.sums)
}

// add computes what a member with several changes adds to each window, and sorts the windows so that those with
// equal sums are adjacent. For example, events on both sides of a week's border result in one group for each
// week, and one for month and year.
func (p *Pieces) add(of int) {
	t := &p.batch.table
	p.sums = p.sums[:0]
	m := t.member(of)
	p.change(m.target, m.points, m.time, p.nameOf(of, first))
	for i := m.more; i != 0; {
		c := t.change(int(i - 1))
		p.change(c.target, c.points, c.time, p.nameOf(of, int(i-1)))
		i = c.next
	}
	slices.SortFunc(p.sums, func(a, b sum) int { return cmp.Compare(a.window, b.window) })
	n := 0
	for _, s := range p.sums {
		if n > 0 && p.sums[n-1].window == s.window {
			last := &p.sums[n-1]
			last.points, last.time = p.batch.targets.merge(s.rule, last.points, last.time, s.points, s.time)
			last.name = t.laterName(last.name, s.name)
			continue
		}
		p.sums[n] = s
		n++
	}
	p.sums = p.sums[:n]
	slices.SortFunc(p.sums, func(a, b sum) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.points, b.points), cmp.Compare(a.time, b.time), t.compareNames(a.name, b.name), cmp.Compare(a.window, b.window))
	})
}

// alike reports whether two windows get the same sum and name, and so belong to the same group.
func (p *Pieces) alike(a, b *sum) bool {
	return a.points == b.points && a.time == b.time && a.rule == b.rule && p.batch.table.compareNames(a.name, b.name) == 0
}

// nameOf returns the name of a member's first change (change == first) or of a further one; nil if no event
// gave one.
func (p *Pieces) nameOf(member, change int) *named {
	if p.names {
		if n := p.batch.table.nameOf(member, change); n.len > 0 {
			return n
		}
	}
	return nil
}

func (p *Pieces) change(target int32, points, time int64, name *named) {
	for _, w := range p.batch.targets.sets[target] {
		p.sums = append(p.sums, sum{w, points, time, p.batch.targets.windowRule(w), name})
	}
}

// put adds a member to the piece's group of a target.
func (p *Pieces) put(target int32, m ledger.Member, name *named) {
	g := p.groupOf[target]
	if g == 0 {
		g = p.group(p.batch.targets.sets[target])
		p.groupOf[target] = g
	}
	p.join(g, m, name)
}

// putPart adds a member to the piece's group of a set of windows. A set that is no target is stored in the
// piece only: if the batch stored it, members with several changes could add as many sets as there are members.
func (p *Pieces) putPart(set []int32, m ledger.Member, name *named) {
	p.text = appendSet(p.text[:0], set)
	text := p.text
	if target, ok := p.batch.targets.setOf[string(text)]; ok {
		p.put(target, m, name)
		return
	}
	g, ok := p.others[string(text)]
	if !ok {
		g = p.group(set)
		p.others[string(text)] = g
	}
	p.join(g, m, name)
}

// group adds a group of these windows to the piece, and returns its number, plus one.
func (p *Pieces) group(windows []int32) int32 {
	p.piece.Groups = extend(p.piece.Groups)
	group := &p.piece.Groups[len(p.piece.Groups)-1]
	before := cap(group.Windows)
	for _, w := range windows {
		group.Windows = append(group.Windows, p.window(w))
	}
	p.room += cap(group.Windows) - before
	return int32(len(p.piece.Groups))
}

func (p *Pieces) join(g int32, m ledger.Member, name *named) {
	group := &p.piece.Groups[g-1]
	before := cap(group.Members)
	group.Members = append(group.Members, m)
	p.room += cap(group.Members) - before
	if p.names {
		before = cap(group.Names)
		group.Names = append(group.Names, p.batch.table.said(name))
		p.room += cap(group.Names) - before
	}
}

func (p *Pieces) window(w int32) int {
	if p.windowOf[w] == 0 {
		p.piece.Windows = append(p.piece.Windows, p.batch.targets.windows[w])
		p.windowOf[w] = int32(len(p.piece.Windows))
	}
	return int(p.windowOf[w] - 1)
}

// extend lengthens a slice by one and keeps the buffers of the element there.
func extend(groups []ledger.Group) []ledger.Group {
	if len(groups) < cap(groups) {
		return groups[:len(groups)+1]
	}
	return append(groups, ledger.Group{})
}
