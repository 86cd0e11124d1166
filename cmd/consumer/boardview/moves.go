package boardview

// This file marks the members who have climbed or fallen.

import (
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// climbed and fell are the marks of members whose rank changed.
const (
	climbed = "▲"
	fell    = "▼"
)

// shownFor is how long a move remains visible; it always remains until the next refresh.
const shownFor = 3 * time.Second

// Moves remembers recent states of a board, to show which members have moved.
type Moves struct{ past []past } // oldest first, including the current state

type past struct {
	at    time.Time
	board *ranking.Board
}

// Add records the state of the board at a time.
func (m *Moves) Add(at time.Time, b *ranking.Board) {
	m.past = append(m.past, past{at, b})
	for len(m.past) > 1 && at.Sub(m.past[1].at) >= shownFor {
		m.past = m.past[1:]
	}
}

// Mark returns an arrow for a member of the current board who has moved recently, or spaces of the same
// width.
func (m *Moves) Mark(st ranking.Standing) string {
	switch by := moved(m.past[0].board, m.past[len(m.past)-1].board, st); {
	case by > 0:
		return climbed + " "
	case by < 0:
		return fell + " "
	}
	return "  "
}

// moved returns by how many ranks a member has climbed between two boards; negative if the member fell. A
// member who was not on the earlier board has climbed if that board starts at rank 1; on a later page this
// is unknown, and moved returns 0. It also returns 0 if the window is another one.
func moved(before, now *ranking.Board, st ranking.Standing) int64 {
	if before.Name != now.Name || before.Window != now.Window || len(before.Standings) == 0 {
		return 0
	}
	at := slices.IndexFunc(before.Standings, func(was ranking.Standing) bool { return was.Member == st.Member })
	switch {
	case at >= 0:
		return before.Standings[at].Rank - st.Rank
	case before.Standings[0].Rank == 1:
		return 1
	}
	return 0
}
