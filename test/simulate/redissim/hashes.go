package redissim

// Hashes: the ledger, the origins, the listing, the workers' lines.

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

// hscan gives all in one page, as Redis does with a small hash.
func hscan(t *tx, a []string) any {
	v, failed := t.read(a[0], hashKind)
	if failed != nil {
		return failed
	}
	if a[1] != "0" {
		return []any{"0", []any{}}
	}
	return []any{"0", v.pairs()}
}
