package ranking

import (
	"strconv"

	"github.com/standings/standings/internal/ledger"
)

// Keys builds all keys of a shard. They share a hash tag, so that the keys of a script are in one slot of a
// cluster.
type Keys struct {
	tag string // prefix:{0}: or, with several shards, prefix:{i.j}:N:
}

// KeysOf returns the keys of a shard. If there are several shards, each key contains their number, so that
// shards of another number under the same prefix share no key.
func KeysOf(prefix string, shard int, of ledger.Shards) Keys {
	k := Keys{tag: prefix + ":{" + Tag(shard, of) + "}:"}
	if of > 1 {
		k.tag += strconv.Itoa(int(of)) + ":"
	}
	return k
}

// Ledger is a hash with the position of every partition.
func (k Keys) Ledger() string { return k.tag + "ledger" }

// Origin is a hash with the offset and time from which each partition's events are counted.
func (k Keys) Origin() string { return k.tag + "origin" }

// Windows is a hash that lists the windows.
func (k Keys) Windows() string { return k.tag + "windows" }

// Dropped is a hash with the windows that must not be opened again.
func (k Keys) Dropped() string { return k.tag + "dropped" }

// Borders is a hash with the settled starts and ends of calendar windows.
func (k Keys) Borders() string { return k.tag + "borders" }

// Final is a hash with the windows that were ever sealed.
func (k Keys) Final() string { return k.tag + "final" }

// Banned is a hash with the banned members.
func (k Keys) Banned() string { return k.tag + "banned" }

// Names is a hash with the members' names and when each name expires.
func (k Keys) Names() string { return k.tag + "names" }

// Rules is a hash with the texts of rules by fingerprint, and the fingerprint by which each partition is
// counted.
func (k Keys) Rules() string { return k.tag + "rules" }

// Schema is the schema that the scores were written with.
func (k Keys) Schema() string { return k.tag + "schema" }

// Workers is a hash with the workers' status lines.
func (k Keys) Workers() string { return k.tag + "workers" }

// Hold is the hold of a rebuild or a reshard. While it exists, apply.lua applies nothing.
func (k Keys) Hold() string { return k.tag + "hold" }

// Rebuild is the lock of a running rebuild.
func (k Keys) Rebuild() string { return k.tag + "~rebuild" }

// Copy marks a shard that a reshard is still writing, and names the reshard.
func (k Keys) Copy() string { return k.tag + "~copy" }

// NumberKey holds the number of shards under a prefix after a reshard has changed it. The key doesn't
// depend on the number of shards.
func NumberKey(prefix string) string { return KeysOf(prefix, 0, 1).tag + "shards" }

// ReshardKey is the lock of a running reshard of a prefix.
func ReshardKey(prefix string) string { return KeysOf(prefix, 0, 1).tag + "~reshard" }

// StaysKey holds the windows that stay longer than their retention. The key doesn't depend on the number of
// shards.
func StaysKey(prefix string) string { return KeysOf(prefix, 0, 1).tag + "stays" }

// LeaderKey holds the leader and its token. The key doesn't depend on the number of shards.
func LeaderKey(prefix string) string { return KeysOf(prefix, 0, 1).tag + "leader" }

// shadow returns the keys of a rebuild's shadow. They differ from the live keys only in the tag.
func (k Keys) shadow(id string) Keys { return Keys{tag: k.tag + "~" + id + ":"} }

// scratch is a key for trying commands. It expires by itself.
func (k Keys) scratch(name string) string { return k.tag + "~try:" + name }

// Window is a window's sorted set.
func (k Keys) Window(w *ledger.Window) string { return k.Listed(w.Listing()) }

// Listed is the sorted set of the window with this name in the listing.
func (k Keys) Listed(name string) string { return k.tag + name }

// Hidden is the window's hidden set: the sorted set of its banned members.
func (k Keys) Hidden(name string) string { return k.tag + name + HiddenSuffix }

// Both returns a window's sorted set and its hidden set.
func (k Keys) Both(name string) (shown, hidden string) {
	hidden = k.Hidden(name)
	return hidden[:len(hidden)-len(HiddenSuffix)], hidden
}

// HiddenSuffix follows the name of a window in the name of its hidden set.
const HiddenSuffix = ":hidden"

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
