package redissim

// What the server holds: keys with a string, a hash, a sorted set or a list. Values are
// shared with snapshots until they are written.

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// value is what stands under a key. One of the four is used.
type value struct {
	kind    kind
	text    string
	hash    hash
	zset    zset
	list    []string
	expires int64 // ms; 0 is never
	// shared says that a snapshot has it, too: whoever writes takes a copy.
	shared bool
}

type kind string

const (
	textKind kind = "string"
	hashKind kind = "hash"
	zsetKind kind = "zset"
	listKind kind = "list"
)

func (v *value) clone() *value {
	c := &value{kind: v.kind, text: v.text, list: slices.Clone(v.list), expires: v.expires}
	c.hash = hash{fields: slices.Clone(v.hash.fields), index: maps.Clone(v.hash.index)}
	c.zset = zset{scores: maps.Clone(v.zset.scores), order: v.zset.order}
	return c
}

// hash keeps its fields in the order in which they came, as long as it is a small one (inOnePiece).
type hash struct {
	fields []field
	index  map[string]int
}

type field struct{ name, value string }

func (h *hash) get(name string) (string, bool) {
	i, there := h.index[name]
	if !there {
		return "", false
	}
	return h.fields[i].value, true
}

// set reports whether the field is new.
func (h *hash) set(name, text string) bool {
	if i, there := h.index[name]; there {
		h.fields[i].value = text
		return false
	}
	if h.index == nil {
		h.index = map[string]int{}
	}
	h.index[name] = len(h.fields)
	h.fields = append(h.fields, field{name, text})
	return true
}

func (h *hash) remove(name string) bool {
	i, there := h.index[name]
	if !there {
		return false
	}
	delete(h.index, name)
	if last := len(h.fields) - 1; last >= inOnePiece { // where the order says nothing
		h.fields[i] = h.fields[last]
		h.fields = h.fields[:last]
		if i < last {
			h.index[h.fields[i].name] = i
		}
		return true
	}
	h.fields = slices.Delete(h.fields, i, i+1)
	for j := i; j < len(h.fields); j++ {
		h.index[h.fields[j].name] = j
	}
	return true
}

// zset works out its order when it is asked for it.
type zset struct {
	scores map[string]float64
	order  []row // nil after a write; never written once made
}

type row struct {
	member string
	score  float64
}

func (z *zset) add(member string, score float64) bool {
	if z.scores == nil {
		z.scores = map[string]float64{}
	}
	_, there := z.scores[member]
	z.scores[member] = score + 0 // a small set has one zero
	z.order = nil
	return !there
}

func (z *zset) remove(member string) bool {
	_, there := z.scores[member]
	delete(z.scores, member)
	z.order = nil
	return there
}

// rows are in the order of Redis: by score, then by the members' bytes.
func (z *zset) rows() []row {
	if z.order == nil {
		z.order = make([]row, 0, len(z.scores))
		for m, s := range z.scores {
			z.order = append(z.order, row{m, s})
		}
		slices.SortFunc(z.order, func(a, b row) int {
			switch {
			case a.score < b.score:
				return -1
			case a.score > b.score:
				return 1
			}
			return strings.Compare(a.member, b.member)
		})
	}
	return z.order
}

// rank is a member's place from the lowest, or -1.
func (z *zset) rank(member string) int {
	score, there := z.scores[member]
	if !there {
		return -1
	}
	rows := z.rows()
	return sort.Search(len(rows), func(i int) bool {
		return rows[i].score > score || rows[i].score == score && rows[i].member >= member
	})
}

// Snapshot is what the server held at some moment: its keys, not its scripts.
type Snapshot struct{ keys map[string]*value }

// Snapshot keeps what there is. It costs little: values are copied when they are next
// written.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.keys {
		v.shared = true
	}
	return Snapshot{maps.Clone(s.keys)}
}

// Restore takes the server back to a snapshot, which can be used again. As after a
// failover the scripts are gone; connections stay (see Cut).
func (s *Server) Restore(from Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = maps.Clone(from.keys)
	if s.keys == nil {
		s.keys = map[string]*value{}
	}
	clear(s.scripts)
}

// Wipe empties the server, its scripts included.
func (s *Server) Wipe() { s.Restore(Snapshot{}) }

// Evict drops a key and reports whether it was there.
func (s *Server) Evict(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.begin(Fault{})
	if t.look(key) == nil {
		return false
	}
	delete(s.keys, key)
	return true
}

// FlushScripts makes the server forget its scripts, and returns how many it knew.
func (s *Server) FlushScripts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.scripts)
	clear(s.scripts)
	return n
}

// Keys are all keys that haven't expired, sorted.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(Fault{}).all()
}

// Dump is all that the server holds as text, a key a line, so that two servers hold the
// same where their dumps are equal.
func (s *Server) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.begin(Fault{})
	var b strings.Builder
	for _, key := range t.all() {
		v := t.look(key)
		b.WriteString(strconv.Quote(key) + " " + string(v.kind))
		switch v.kind {
		case textKind:
			b.WriteString(" " + strconv.Quote(v.text))
		case listKind:
			for _, e := range v.list {
				b.WriteString(" " + strconv.Quote(e))
			}
		case hashKind:
			for _, name := range slices.Sorted(maps.Keys(v.hash.index)) {
				text, _ := v.hash.get(name)
				b.WriteString(" " + strconv.Quote(name) + "=" + strconv.Quote(text))
			}
		case zsetKind:
			for _, r := range v.zset.rows() {
				b.WriteString(" " + strconv.Quote(r.member) + "=" + strconv.FormatFloat(r.score, 'g', -1, 64))
			}
		}
		if v.expires != 0 {
			b.WriteString(" until " + strconv.FormatInt(v.expires, 10))
		}
		b.WriteString("\n")
	}
	return b.String()
}
