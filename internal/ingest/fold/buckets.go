package fold

import "math/bits"

// address returns the bucket of a hash: its first level bits, or one bit more if the bucket has been split.
func (t *table) address(hash uint64) int {
	r := bits.Reverse64(hash)
	i := int(r & (1<<t.level - 1))
	if i < t.split {
		i = int(r & (1<<(t.level+1) - 1))
	}
	return i
}

func (t *table) grow() Result {
	if r := t.take(bucketBytes); r != Added {
		return r
	}
	if len(t.buckets) == 0 {
		t.level, t.split = firstLevel, 0
	}
	chunk := bucketPool.Get().(*[bucketChunk]int32)
	clear(chunk[:])
	t.buckets = append(t.buckets, chunk)
	return Added
}

// splitOne moves half of one bucket's range of hashes to a new bucket. Without memory for that, the chains only
// get longer. The members of both halves stay in order: see crowds.
func (t *table) splitOne() bool {
	from, to := t.split, t.split+1<<t.level
	if to/bucketChunk == len(t.buckets) && t.grow() != Added {
		return false
	}
	bit := uint64(1) << t.level
	low, high := t.bucket(from), t.bucket(to) // where each half's next member goes
	i := *low
	for i != 0 {
		m := t.member(int(i - 1))
		if bits.Reverse64(m.hash)&bit != 0 {
			*high, high = i, &m.next
		} else {
			*low, low = i, &m.next
		}
		i = m.next
	}
	*low, *high = 0, 0
	t.split++
	if t.split == 1<<t.level {
		t.level++
		t.split = 0
	}
	return true
}
