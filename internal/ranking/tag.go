package ranking

import (
	"strconv"

	"github.com/standings/standings/internal/ledger"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Tag returns a shard's hash tag: the text between braces in its keys, by which a cluster keeps them in one
// slot. A single shard has the tag 0. Shard i of n has the tag i.j, with the smallest j whose slot is in
// the i-th of n equal ranges of slots. Cluster tools assign contiguous ranges of slots, so every master
// gets about the same number of shards.
func Tag(shard int, of ledger.Shards) string {
	if of == 1 {
		return "0"
	}
	low, high := shard*slots, (shard+1)*slots // bounds of the range, multiplied by n
	for j := 0; ; j++ {
		tag := strconv.Itoa(shard) + "." + strconv.Itoa(j)
		if at := slotOf(tag) * int(of); low <= at && at < high {
			return tag
		}
	}
}

// slotOf returns the slot of a hash tag: its CRC-16 (XMODEM) modulo the number of slots.
func slotOf(tag string) int {
	const polynomial = 0x1021
	sum := uint16(0)
	for _, c := range []byte(tag) {
		sum ^= uint16(c) << 8
		for range 8 {
			carry := sum&0x8000 != 0
			if sum <<= 1; carry {
				sum ^= polynomial
			}
		}
	}
	return int(sum) % slots
}
