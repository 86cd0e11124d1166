package redissim

// Hashes: the ledger, the origins, the listing, the workers' entries.

import (
	"hash/crc32"
	"strconv"
	"strings"
)

// inOnePiece is the maximum number of fields in a hash that Redis keeps in one listpack (hash-max-listpack-entries):
// they stay in insertion order and are scanned in one page.
const inOnePiece = 512

func hget(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil || v == nil {
		return failed
	}
	if text, there := v.hash.get(a[1]); there {
		return text
	}
	return nil
}

func hset(t *tx, a []string) any {
	if len(a)%2 == 0 {
		return Error("ERR wrong number of arguments for 'hset' command")
	}
	v, failed := t.write(a[0], hashKind)
	if failed != nil {
		return failed
	}
	added := int64(0)
	for i := 1; i < len(a); i += 2 {
		added += integer(v.hash.set(a[i], a[i+1]))
	}
	return added
}

func hdel(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	if v == nil {
		return int64(0)
	}
	v = t.own(a[0], v)
	n := int64(0)
	for _, name := range a[1:] {
		n += integer(v.hash.remove(name))
	}
	t.tidy(a[0], v)
	return n
}

func hlen(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	if v == nil {
		return int64(0)
	}
	return int64(len(v.hash.fields))
}

func hgetall(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	return Map(v.pairs())
}

func hkeys(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	names := []any{}
	if v != nil {
		for _, f := range v.hash.fields {
			names = append(names, f.name)
		}
	}
	return names
}

func (v *value) pairs() []any {
	if v == nil {
		return []any{}
	}
	all := make([]any, 0, 2*len(v.hash.fields))
	for _, f := range v.hash.fields {
		all = append(all, f.name, f.value)
	}
	return all
}

// hscan returns a small hash in one page, as Redis does. A larger hash comes in pages of about COUNT fields, in the
// order of the names' hashes. Fields that exist from the first page to the last are returned, whatever fields are
// added or removed meanwhile.
func hscan(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	if v == nil || len(v.hash.fields) <= inOnePiece {
		if a[1] != "0" {
			return []any{"0", []any{}}
		}
		return []any{"0", v.pairs()}
	}
	from, err := strconv.ParseUint(a[1], 10, 64)
	if err != nil {
		return Error("ERR invalid cursor")
	}
	count := uint64(10)
	for i := 2; i+1 < len(a); i += 2 {
		if strings.EqualFold(a[i], "count") {
			if count, err = strconv.ParseUint(a[i+1], 10, 32); err != nil || count == 0 {
				return errInteger
			}
		}
	}
	const all = 1 << 32
	to := from + max(1, all*count/uint64(len(v.hash.fields)))
	page := []any{}
	for _, f := range v.hash.fields {
		if at := uint64(crc32.ChecksumIEEE([]byte(f.name))); at >= from && at < to {
			page = append(page, f.name, f.value)
		}
	}
	if to >= all {
		to = 0
	}
	return []any{strconv.FormatUint(to, 10), page}
}

func hmget(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	all := make([]any, len(a)-1)
	for i, name := range a[1:] {
		if v == nil {
			continue
		}
		if text, there := v.hash.get(name); there {
			all[i] = text
		}
	}
	return all
}
