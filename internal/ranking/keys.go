package ranking

import (
	"strconv"

	"github.com/standings/standings/internal/ledger"
)

// keys builds every key there is. All of a shard's share a hash tag, so that one
// script's keys share a slot of a cluster.
type keys struct {
	tag string // prefix:{shard}:
}

func newKeys(prefix string, shard int) keys {
	return keys{tag: prefix + ":{" + strconv.Itoa(shard) + "}:"}
}

func (k keys) ledger() string  { return k.tag + "ledger" }
func (k keys) origin() string  { return k.tag + "origin" }
func (k keys) windows() string { return k.tag + "windows" }
func (k keys) dropped() string { return k.tag + "dropped" }
func (k keys) schema() string  { return k.tag + "schema" }
func (k keys) workers() string { return k.tag + "workers" }
func (k keys) hold() string    { return k.tag + "hold" }

// rebuild is whose rebuild is under way.
func (k keys) rebuild() string { return k.tag + "~rebuild" }

// shadow are the keys of a rebuild's shadow, the same as the live ones but for their tag.
func (k keys) shadow(id string) keys { return keys{tag: k.tag + "~" + id + ":"} }

// scratch is a key to try commands on; it expires by itself.
func (k keys) scratch(name string) string { return k.tag + "~try:" + name }

// window is a window's sorted set.
func (k keys) window(w *ledger.Window) string { return k.listed(w.Listing()) }

// listed is the sorted set of a window by its name in the listing.
func (k keys) listed(name string) string { return k.tag + name }
