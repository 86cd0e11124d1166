package fold

import (
	"bytes"
	"cmp"
	"slices"
)

// Ids can be made so that their hashes begin alike, and the buckets are addressed by the
// first bits. The honest meet this too: of a sweep that is taken over near its end, all
// members begin with the same bits. So a chain that is longer than chance makes it, a
// crowd, isn't searched from its head, but by a map of Go's, whose seed nobody knows:
//
//   - every hash of the chain is in the map, with the first of its members;
//   - members of one hash follow each other in the chain. Those are at most a thousand:
//     see maxPerHash.
//
// What is in the map of a chain that was split and is short again isn't looked at.
type crowds map[uint64]int32

const (
	// crowd is the longest chain that isn't one. With two members to a bucket, which is
	// how full those are that wait to be split, one in ten billion is longer.
	crowd = 16
	// crowdBytes is what a member in a crowd takes further: of the map, and of the
	// list in which a walk sorts the bucket.
	crowdBytes = 48
)

// reaches reports whether a chain has n members or more.
func (t *table) reaches(i int32, n int) bool {
	for ; n > 0; n-- {
		if i == 0 {
			return false
		}
		i = t.member(int(i - 1)).next
	}
	return true
}

// makeRoom takes the memory for another member of a chain that is a crowd, or becomes one
// by it, and has it ready for join.
func (t *table) makeRoom(head *int32, hash uint64) Result {
	missing := 0
	if _, ok := t.crowds[hash]; !ok {
		missing++
	}
	if t.reaches(*head, crowd+1) { // it is one already
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
		t.crowds[m.hash] = i // the last one that is set is the first of its hash
	}
	return Added
}

// join puts a new member into a crowd.
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

// ofHash is where to look for the members of a hash in a chain, and whether they follow
// each other there.
func (t *table) ofHash(hash uint64, head int32) (first int32, adjacent bool) {
	if t.reaches(head, crowd+1) {
		return t.crowds[hash], true
	}
	return head, false
}
