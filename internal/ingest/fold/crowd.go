package fold

import (
	"bytes"
	"cmp"
	"slices"
)

// An attacker can choose ids whose hashes have the same first bits, and buckets are addressed by these bits.
// This also happens without an attacker: if a worker takes over a sweep near its end, the hashes of all
// remaining members have the same first bits. A chain that is longer than chance explains is a crowd. A crowd
// is not searched from its head, but through a Go map, whose seed is secret:
//
//   - the map has every hash of the chain, with the first member of that hash;
//   - members of one hash follow each other in the chain. There are at most a thousand of them: see
//     maxPerHash.
//
// After a split has made a chain short again, its entries in the map are ignored.
type crowds map[uint64]int32

const (
	// crowd is the length of the longest chain that is not a crowd. The fullest buckets, those about to be
	// split, have two members on average; one in ten billion of them has a longer chain.
	crowd = 16
	// crowdBytes is the additional memory for each member in a crowd: the map entry, and the list in which a
	// walk sorts the bucket.
	crowdBytes = 48
)

// reaches reports whether a chain has at least n members.
func (t *table) reaches(i int32, n int) bool {
	for ; n > 0; n-- {
		if i == 0 {
			return false
		}
		i = t.member(int(i - 1)).next
	}
	return true
}

// makeRoom reserves memory for another member of a chain that is a crowd, or becomes one with that member, and
// prepares the chain for join.
func (t *table) makeRoom(head *int32, hash uint64) Result {
	missing := 0
	if _, ok := t.crowds[hash]; !ok {
		missing++
	}
	if t.reaches(*head, crowd+1) { // already a crowd
		return t.take(int64(missing) * crowdBytes)
	}
	var chain [crowd]int32
	for n, i := 0, *head; n < crowd; n++ {
		chain[n] = i
		m := t.member(int(i - 1))
		if _, ok := t.crowds[m.hash]; !ok {
			missing++
		}
		i = m.next
	}
	if r := t.take(int64(missing) * crowdBytes); r != Added {
		return r
	}
	if t.crowds == nil {
		t.crowds = crowds{}
	}
	slices.SortFunc(chain[:], func(a, b int32) int {
		return cmp.Compare(t.member(int(a-1)).hash, t.member(int(b-1)).hash)
	})
	*head = 0
	for _, i := range slices.Backward(chain[:]) {
		m := t.member(int(i - 1))
		m.next, *head = *head, i
		t.crowds[m.hash] = i // the last assignment for a hash is the hash's first member
	}
	return Added
}

// join adds a new member to a crowd.
func (t *table) join(head *int32, at int) {
	m := t.member(at)
	if first, ok := t.crowds[m.hash]; ok {
		f := t.member(int(first - 1))
		m.next, f.next = f.next, int32(at+1)
		return
	}
	m.next, *head = *head, int32(at+1)
	t.crowds[m.hash] = int32(at + 1)
}

func (t *table) findInCrowd(head *int32, hash uint64, id []byte) found {
	f := found{at: -1, head: head, chain: crowd}
	for i := t.crowds[hash]; i != 0; {
		m := t.member(int(i - 1))
		if m.hash != hash {
			break
		}
		if bytes.Equal(t.id(m), id) {
			f.at = int(i - 1)
			return f
		}
		f.alike = true
		i = m.next
	}
	return f
}

// ofHash returns where the search for a hash's members starts in a chain, and whether these members are
// adjacent.
func (t *table) ofHash(hash uint64, head int32) (first int32, adjacent bool) {
	if t.reaches(head, crowd+1) {
		return t.crowds[hash], true
	}
	return head, false
}
