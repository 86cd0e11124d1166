package ranking

import (
	"strconv"

	"github.com/standings/standings/internal/ledger"
)

// Keys builds every key there is of a shard. All of them share a hash tag, so that one
// script's keys share a slot of a cluster.
type Keys struct {
	tag string // prefix:{0}: or, of several shards, prefix:{i.j}:N:
}

// newKeys are the keys of a shard. Where there are several, their number is in each key:
// shards of another number beside them share none.
func newKeys(prefix string, shard int, of ledger.Shards) Keys {
	k := Keys{tag: prefix + ":{" + Tag(shard, of) + "}:"}
	if of > 1 {
		k.tag += strconv.Itoa(int(of)) + ":"
	}
	return k
}

// Ledger holds the position of every partition.
func (k Keys) Ledger() string { return k.tag + "ledger" }

// Origin holds from which offset and time on the events of each partition are in.
func (k Keys) Origin() string { return k.tag + "origin" }

// Windows lists the windows.
func (k Keys) Windows() string { return k.tag + "windows" }

// Dropped holds which windows nothing opens any more.
func (k Keys) Dropped() string { return k.tag + "dropped" }

// Borders holds where windows of calendars start and end, once that is settled.
func (k Keys) Borders() string { return k.tag + "borders" }

// Final holds which windows were ever sealed.
func (k Keys) Final() string { return k.tag + "final" }

// Banned holds who isn't shown.
func (k Keys) Banned() string { return k.tag + "banned" }

// Names holds what members are called, and until when.
func (k Keys) Names() string { return k.tag + "names" }

// Rules holds texts of rules by their fingerprints, and by which each partition is counted.
func (k Keys) Rules() string { return k.tag + "rules" }

// Schema holds what the scores were written with.
func (k Keys) Schema() string { return k.tag + "schema" }

// Workers holds the workers' lines.
func (k Keys) Workers() string { return k.tag + "workers" }

// Hold is a rebuild's: while it is there, nothing is applied.
func (k Keys) Hold() string { return k.tag + "hold" }

// Rebuild is whose rebuild is under way.
func (k Keys) Rebuild() string { return k.tag + "~rebuild" }

// Copy is whose copy a shard is that a reshard writes.
func (k Keys) Copy() string { return k.tag + "~copy" }

// NumberKey has how many shards a prefix has, once a reshard has changed that. It is the same
// key whatever the number.
func NumberKey(prefix string) string { return newKeys(prefix, 0, 1).tag + "shards" }

// ReshardKey is whose reshard of a prefix is under way.
func ReshardKey(prefix string) string { return newKeys(prefix, 0, 1).tag + "~reshard" }

// StaysKey holds which windows stay longer than their retention. It is the same key whatever the number of shards.
func StaysKey(prefix string) string { return newKeys(prefix, 0, 1).tag + "stays" }

// LeaderKey is who leads, and by which token. It is the same key whatever the number of shards.
func LeaderKey(prefix string) string { return newKeys(prefix, 0, 1).tag + "leader" }

// shadow are the keys of a rebuild's shadow, the same as the live ones but for their tag.
func (k Keys) shadow(id string) Keys { return Keys{tag: k.tag + "~" + id + ":"} }

// scratch is a key to try commands on; it expires by itself.
func (k Keys) scratch(name string) string { return k.tag + "~try:" + name }

// Window is a window's sorted set.
func (k Keys) Window(w *ledger.Window) string { return k.Listed(w.Listing()) }

// Listed is the sorted set of a window by its name in the listing.
func (k Keys) Listed(name string) string { return k.tag + name }

// Hidden is the sorted set beside it of who is banned there.
func (k Keys) Hidden(name string) string { return k.tag + name + HiddenSuffix }

// Both are a window's sorted set and its hidden set.
func (k Keys) Both(name string) (shown, hidden string) {
	hidden = k.Hidden(name)
	return hidden[:len(hidden)-len(HiddenSuffix)], hidden
}

// HiddenSuffix is what the name of a window's hidden set has behind the window's.
const HiddenSuffix = ":hidden"
