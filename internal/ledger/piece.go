package ledger

import (
	"cmp"
	"math"
)

// Window is one stretch of a period, [Start, End) in Unix milliseconds, for one
// board.
type Window struct {
	Board  string
	Period string
	Name   string
	Start  int64
	End    int64
}

// Listing is the name under which a window is listed: global:weekly:2026-W47.
func (w Window) Listing() string { return w.Board + ":" + w.Period + ":" + w.Name }

// Compare orders by board, period and start.
func (w Window) Compare(v Window) int {
	return cmp.Or(cmp.Compare(w.Board, v.Board), cmp.Compare(w.Period, v.Period), cmp.Compare(w.Start, v.Start), cmp.Compare(w.Name, v.Name))
}

// Member is what one member's events over the windows of a group come to. By the default rule
// that is the sum of their points; by another one Points and Time are a rules.Value.
type Member struct {
	ID     []byte // 1 to 256 bytes
	Points int64
	// Time is, by the default rule, the latest time of the events with positive points, in Unix
	// milliseconds. NoTime where there is none: then the window's start counts.
	Time int64
}

// NoTime lies before every window's start, and counts as that start.
const NoTime = math.MinInt64

// Group is a set of windows, all of boards by one rule, and the members whose sums are the
// same in all of them.
type Group struct {
	Windows []int // indexes into Piece.Windows
	Members []Member
	// Names are what the members want to be called, in their order, where names are counted: then
	// all groups of a piece have them. Else there are none.
	Names []Name
}

// Name is what a member wants to be called, by the latest of some events, at whose time. Without
// a text none of them said.
type Name struct {
	Text []byte // 1 to 64 characters
	Time int64  // ms
}

// Piece is what one atomic call adds: all of a batch's changes of its members,
// in every board and window. In a piece a member and a window meet once.
type Piece struct {
	Partition Partition
	Expected  Position
	Next      Position
	Windows   []Window
	Groups    []Group
	// Without are windows that events of the batch would count in, of members of the shard, and that
	// are left out since they are final: by their names in the listing. Where one isn't, nothing is added.
	Without []string
	Note    *Note // to be written in the same call; nil if it is there
}

// Width is the number of member-windows: what a call costs.
func (p *Piece) Width() int {
	n := 0
	for _, g := range p.Groups {
		n += len(g.Windows) * len(g.Members)
	}
	return n
}
