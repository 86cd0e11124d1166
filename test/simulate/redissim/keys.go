package redissim

// The content of the server: keys with a string, a hash, a sorted set or a list. Snapshots share values until
// they are written.

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// value is the value of a key. Only the member for its kind is used.
type value struct {
	kind    kind
	text    string
	hash    hash
	zset    zset
	list    []string
	expires int64 // Unix ms; 0 is never
	// shared is set if a snapshot shares the value: it must be copied before a write.
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

// hash keeps its fields in insertion order while it is small (inOnePiece).
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

// set sets a field, and reports whether it is new.
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
	if last := len(h.fields) - 1; last >= inOnePiece { // in a large hash the order has no meaning
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

// zset computes its order on demand.
type zset struct {
	scores map[string]float64
	order  []row // nil after a write; immutable once computed
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
	z.scores[member] = score + 0 // a small set has only one zero
	z.order = nil
	return !there
}

func (z *zset) remove(member string) bool {
	_, there := z.scores[member]
	delete(z.scores, member)
	z.order = nil
	return there
}

// rows returns the members in Redis's order: by score, then by the bytes of the member.
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

// rank returns a member's position from the lowest score, or -1.
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

// Snapshot is the content of the server at a moment: its keys, without its scripts.
type Snapshot struct{ keys map[string]*value }

// Snapshot captures the server's keys. It is cheap: a value is copied when it is next written.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.keys {
		v.shared = true
	}
	return Snapshot{maps.Clone(s.keys)}
}

// Restore takes the server back to a snapshot, which can be used again. Like a failover, it removes all scripts;
// connections stay (see Cut).
func (s *Server) Restore(from Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = maps.Clone(from.keys)
	if s.keys == nil {
		s.keys = map[string]*value{}
	}
	clear(s.scripts)
}

// Wipe empties the server, including its scripts.
func (s *Server) Wipe() { s.Restore(Snapshot{}) }

// Evict removes a key and reports whether it existed.
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

// FlushScripts removes all scripts, and returns their number.
func (s *Server) FlushScripts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.scripts)
	clear(s.scripts)
	return n
}

// Keys returns all keys that have not expired, sorted.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(Fault{}).all()
}

// Dump returns the whole content as text, with one line per key. Two servers have the same content if their dumps
// are equal.
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
