package boardview

// Who has climbed and who has fallen.

import (
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// climbed and fell are the marks of members who have moved.
const (
	climbed = "▲"
	fell    = "▼"
)

// shownFor is how long a move is shown, and at least until the next look.
const shownFor = 3 * time.Second

// Moves remembers a board as it was, to say who has moved lately.
type Moves struct{ past []past } // the oldest first, the last one included

type past struct {
	at    time.Time
	board *ranking.Board
}

// Add takes the board as of now.
func (m *Moves) Add(at time.Time, b *ranking.Board) {
	m.past = append(m.past, past{at, b})
	for len(m.past) > 1 && at.Sub(m.past[1].at) >= shownFor {
		m.past = m.past[1:]
	}
}

// Mark is an arrow for a member of the last board who has moved lately, as wide as no arrow.
func (m *Moves) Mark(st ranking.Standing) string {
	switch by := moved(m.past[0].board, m.past[len(m.past)-1].board, st); {
	case by > 0:
		return climbed + " "
	case by < 0:
		return fell + " "
	}
	return "  "
}

// moved is by how many ranks a member has climbed between two boards, negative for fallen. A
// member who was not among the first has climbed; of a page further down that isn't known.
// No member has moved in another window.
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
