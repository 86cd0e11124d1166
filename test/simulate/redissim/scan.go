package redissim

// ZSCAN as Redis has it: a set that it keeps in one piece comes as a whole, another one bucket after
// bucket of a table, whose order is that of its process alone.

import (
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// zsetInOnePiece is how many members Redis keeps in one piece (zset-max-listpack-entries).
const zsetInOnePiece = 128

// process is what a scan's cursors belong to.
type process struct{ number uint64 }

// id is the name that it has given itself.
func (p process) id() string { return strings.Repeat("0", 24) + strconv.FormatUint(1<<63+p.number, 16) }

// bucket is where a member is in a table of so many bits.
func (p process) bucket(member string, size int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, p.number*0x9e3779b97f4a7c15, 16))
	_, _ = h.Write([]byte(member))
	x := h.Sum64() // whose low bits are of the last bytes mostly
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>32) & (1<<size - 1)
}

// Restart has another process take over, with all that was there but the scripts. Connections stay
// (see Cut).
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.number++
	clear(s.scripts)
}

// zscan goes through the buckets in the order of their numbers' reversed bits, as dictScan does. So
// whoever is there from the first call to the last is returned whatever the table's size becomes
// meanwhile: one that was half as large has two buckets where there was one, next to each other in
// that order, and a smaller one returns again who was in the other half. The table here changes its
// size all the time, as that of a set may which grows, shrinks, and is moved to another table.
func zscan(t *tx, a []string) any {
	v, failed := t.read(a[0], zsetKind)
	if failed != nil {
		return failed
	}
	cursor, err := strconv.ParseUint(a[1], 10, 64)
	if err != nil {
		return Error("ERR invalid cursor")
	}
	count := 10
	for i := 2; i < len(a); i += 2 {
		if i+1 == len(a) || !strings.EqualFold(a[i], "count") {
			return errSyntax
		}
		if count, err = strconv.Atoi(a[i+1]); err != nil {
			return errInteger
		}
		if count < 1 {
			return errSyntax
		}
	}
	page := []any{}
	if v == nil {
		return []any{"0", page}
	}
	rows := v.zset.rows()
	if len(rows) <= zsetInOnePiece {
		for _, r := range rows {
			page = append(page, r.member, formatScore(r.score))
		}
		return []any{"0", page}
	}
	t.scans++
	size := max(2, bits.Len(uint(len(rows)-1))) + int(t.process.bucket(strconv.Itoa(t.scans/2), 8)%3)
	buckets := map[uint64][]row{}
	for _, r := range rows {
		at := t.process.bucket(r.member, size)
		buckets[at] = append(buckets[at], r)
	}
	mask := uint64(1)<<size - 1
	for range 10 * count { // as many empty buckets are gone through in a call
		in := buckets[cursor&mask]
		slices.Reverse(in) // who came last is first, and in no order that means anything
		for _, r := range in {
			page = append(page, r.member, formatScore(r.score))
		}
		cursor = bits.Reverse64(bits.Reverse64(cursor|^mask) + 1)
		if cursor == 0 || len(page) >= 2*count {
			break
		}
	}
	return []any{strconv.FormatUint(cursor, 10), page}
}
