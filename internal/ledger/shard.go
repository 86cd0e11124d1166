package ledger

import "math/bits"

// Shards is the number of shards. Members are divided by hash: shard i of n has those in the i-th of n
// equal ranges. A sweep proceeds upwards by hash, so it passes one shard after another.
type Shards int

// MaxShards is the largest number of shards.
const MaxShards = 256

// Of returns the shard of a member's hash: floor(hash * n / 2^64).
func (n Shards) Of(hash uint64) int {
	shard, _ := bits.Mul64(hash, uint64(n))
	return int(shard)
}

// From returns the lowest hash of a shard. For shard n, which is past the last, it returns 0 for 2^64.
func (n Shards) From(shard int) uint64 {
	if shard == int(n) {
		return 0
	}
	from, rest := bits.Div64(uint64(shard), 0, uint64(n))
	if rest > 0 {
		from++
	}
	return from
}

// CanBeAt reports whether a shard's ledger can be at a position. A sweep of the shard starts at its lowest
// hash and ends after its highest, so a position within a sweep must have a hash between the two.
func (n Shards) CanBeAt(shard int, at Position) bool {
	end := n.From(shard + 1)
	return !at.Sweeping() || at.Hash > n.From(shard) && (end == 0 || at.Hash < end)
}

// Overlapping returns the shards of n that share members with a shard of another number of shards.
func (n Shards) Overlapping(shard int, of Shards) (all []int) {
	for i := range int(n) {
		if i*int(of) < (shard+1)*int(n) && (i+1)*int(of) > shard*int(n) {
			all = append(all, i)
		}
	}
	return all
}
