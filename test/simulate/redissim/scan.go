package redissim

// ZSCAN as in Redis: a set in one listpack is returned whole; a larger one bucket by bucket of a hash table,
// whose order is specific to the process.

import (
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// zsetInOnePiece is the maximum number of members that Redis keeps in one listpack (zset-max-listpack-entries).
const zsetInOnePiece = 128

// process identifies the server process that a scan's cursors belong to.
type process struct{ number uint64 }

// id returns the process's run_id.
func (p process) id() string { return strings.Repeat("0", 24) + strconv.FormatUint(1<<63+p.number, 16) }

// bucket returns a member's bucket in a table of 2^size buckets.
func (p process) bucket(member string, size int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, p.number*0x9e3779b97f4a7c15, 16))
	_, _ = h.Write([]byte(member))
	x := h.Sum64() // its low bits depend mostly on the last bytes
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>32) & (1<<size - 1)
}

// Restart replaces the server process: all data stays, the scripts are gone. Connections stay (see Cut).
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.number++
	clear(s.scripts)
}

// zscan visits the buckets in the order of their numbers' reversed bits, as dictScan does. A member that exists
// from the first call to the last is therefore returned, even if the table's size changes meanwhile: when the table
// doubles, a bucket becomes two that are adjacent in that order; when it shrinks, a merged bucket returns members of
// its other half again. Here the table's size changes constantly, like that of a set that grows, shrinks and is
// moved to another table.
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
	for range 10 * count { // one call visits at most this many empty buckets
		in := buckets[cursor&mask]
		slices.Reverse(in) // the last added is first: an order without meaning
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
