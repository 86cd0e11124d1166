package boardview

// Who has climbed and who has fallen.

import (
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// Moved is by how many ranks a member has climbed since the board was as before, negative for
// fallen. Who wasn't among the first then has climbed; of a page further down it isn't known
// where they came from. Another window is another board: nobody has moved in it.
func Moved(before, now *ranking.Board, st ranking.Standing) int64 {
	if before.Name != now.Name || before.Window != now.Window || len(before.Standings) == 0 {
		return 0
	}
	at := slices.IndexFunc(before.Standings, func(was ranking.Standing) bool { return was.Member == st.Member })
	switch {
	case at >= 0:
		return before.Standings[at].Rank - st.Rank
	case before.Standings[0].Rank == 1:
		return max(1, before.Standings[len(before.Standings)-1].Rank+1-st.Rank)
	}
	return 0
}

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

// Of is by how many ranks a member of the last board has climbed lately.
func (m *Moves) Of(st ranking.Standing) int64 {
	return Moved(m.past[0].board, m.past[len(m.past)-1].board, st)
}
