package ledger

import "math/bits"

// Shards is the number of parts into which members are cut by their hashes: shard i of n has
// those of the i-th of n equal ranges. A sweep, which goes upwards by hash, so passes one
// shard after another.
type Shards int

// MaxShards is the most there may be.
const MaxShards = 256

// Of is the shard of a member's hash: floor(hash * n / 2^64).
func (n Shards) Of(hash uint64) int {
	shard, _ := bits.Mul64(hash, uint64(n))
	return int(shard)
}

// From is the lowest hash of a shard. That of the shard after the last is 0, as 2^64 is.
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

// CanBeAt reports whether a shard's ledger can be at a position: in a sweep only at a hash that
// is of the shard and isn't its lowest, since the sweep begins there, and ends with the last.
func (n Shards) CanBeAt(shard int, at Position) bool {
	end := n.From(shard + 1)
	return !at.Sweeping() || at.Hash > n.From(shard) && (end == 0 || at.Hash < end)
}

// Overlapping are the shards of n that have members of a shard of others.
func (n Shards) Overlapping(shard int, of Shards) (all []int) {
	for i := range int(n) {
		if i*int(of) < (shard+1)*int(n) && (i+1)*int(of) > shard*int(n) {
			all = append(all, i)
		}
	}
	return all
}
