package ranking

import (
	"strconv"

	"github.com/standings/standings/internal/ledger"
)

// slots is how many slots a cluster deals out over its masters.
const slots = 16384

// Tag is the hash tag of a shard: what its keys have between braces, by which a cluster
// keeps them together. Of one shard it is 0. Of n it is i.j, with the smallest j whose slot
// lies in the i-th of n equal ranges of slots: cluster tools deal out contiguous ranges, so
// that masters get as many shards each.
func Tag(shard int, of ledger.Shards) string {
	if of == 1 {
		return "0"
	}
	low, high := shard*slots, (shard+1)*slots // of n times a slot
	for j := 0; ; j++ {
		tag := strconv.Itoa(shard) + "." + strconv.Itoa(j)
		if at := slotOf(tag) * int(of); low <= at && at < high {
			return tag
		}
	}
}

// slotOf is the slot of a hash tag: its CRC-16 (of XMODEM), modulo the number of slots.
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
