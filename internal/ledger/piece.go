package ledger

import (
	"cmp"
	"math"
)

// Window is a window of a board: the interval [Start, End), in Unix ms.
type Window struct {
	Board  string
	Period string
	Name   string
	Start  int64
	End    int64
}

// Listing returns the window's name in the listing: global:weekly:2026-W47.
func (w Window) Listing() string { return w.Board + ":" + w.Period + ":" + w.Name }

// Compare orders windows by board, period and start.
func (w Window) Compare(v Window) int {
	return cmp.Or(cmp.Compare(w.Board, v.Board), cmp.Compare(w.Period, v.Period), cmp.Compare(w.Start, v.Start), cmp.Compare(w.Name, v.Name))
}

// Member has the sum of the points that a member's events add in the windows of a group. By another rule
// than the default one, Points and Time are a rules.Value.
type Member struct {
	ID     []byte // 1 to 256 bytes
	Points int64
	// Time is, by the default rule, the latest time of the events with positive points, in Unix ms. It is
	// NoTime if there are none; then the window's start counts.
	Time int64
}

// NoTime is before every window's start, and counts as that start.
const NoTime = math.MinInt64

// Group is a set of windows of boards with the same rule, and the members with what they add, which is
// equal in all of these windows.
type Group struct {
	Windows []int // indexes into Piece.Windows
	Members []Member
	// Names has a name for each member, in order, if names are counted: then all groups of a piece have
	// them. Otherwise it is empty.
	Names []Name
}

// Name is a member's name in the latest event that has one, and that event's time. Text is empty if no
// event has a name.
type Name struct {
	Text []byte // 1 to 64 characters
	Time int64  // Unix ms
}

// Piece is what one atomic call adds: all of a batch's changes of its members, in every board and window. A
// member occurs at most once in a window.
type Piece struct {
	Partition Partition
	Expected  Position
	Next      Position
	Windows   []Window
	Groups    []Group
	// Without are final windows that events of the shard's members belong in, and that the piece leaves
	// out, by their names in the listing. If one of them isn't final, nothing is added.
	Without []string
	Note    *Note // written in the same call; nil if it is already written
}

// Width returns the number of pairs of member and window, which determines a call's cost.
func (p *Piece) Width() int {
	n := 0
	for _, g := range p.Groups {
		n += len(g.Windows) * len(g.Members)
	}
	return n
}
