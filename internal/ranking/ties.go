package ranking

// How many members have more points, or a better tuple, than a standing, and how many at least as
// many. Members with as many are rows side by side, whenever they reached it: so all of a page is
// known by what is above its first row and by who has at least as much as its last.

// Tie says of rows that follow each other how many have more than each, and how many at least as
// many, by how many have more than the first, and how many at least as many as the last. Where
// those were counted at another moment than the ranks, the ranks count: of nobody is More as large
// as the rank, or AtLeast below it.
func Tie(rows []Standing, more, atLeast int64) {
	var to int
	for from := 0; from < len(rows); from = to {
		for to = from + 1; to < len(rows) && rows[to].equals(&rows[from]); {
			to++
		}
		above, down := rows[from].Rank-1, rows[to-1].Rank
		if from == 0 {
			above = min(above, more)
		}
		if to == len(rows) {
			down = max(down, atLeast)
		}
		for i := range rows[from:to] {
			rows[from+i].More, rows[from+i].AtLeast = above, down
		}
	}
}

// equals reports whether two have the same points, or tuple.
func (s *Standing) equals(other *Standing) bool {
	return s.Points == other.Points && s.Tuple == other.Tuple
}

// tie fills in what read.lua returns of ties: of the first and the last row, then of who was
// looked up.
func (b *Part) tie(reply any) error {
	looked := b.Standings[b.Rows:]
	counts, err := integers(reply, 2+2*len(looked))
	if err != nil {
		return err
	}
	Tie(b.Standings[:b.Rows], counts[0], counts[1])
	for i := range looked {
		if st := &looked[i]; st.Rank > 0 {
			st.More, st.AtLeast = counts[2+2*i], counts[3+2*i]
		}
	}
	return nil
}
