package ranking

// Counts of the members that have more points (or a better tuple) than a standing, and of those that have
// at least as many. Members with equal points have adjacent rows, whenever they reached them. So for all
// rows of a page two counts suffice: the members with more than its first row, and those with at least as
// much as its last row.

// Tie sets More and AtLeast of consecutive rows, given the number of members with more than the first row
// and with at least as much as the last row. If those counts are from another moment than the ranks, the
// ranks take precedence: More is always below a row's rank, and AtLeast is never below it.
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

// equals reports whether two standings have the same points or tuple.
func (s *Standing) equals(other *Standing) bool {
	return s.Points == other.Points && s.Tuple == other.Tuple
}

// tie parses the tie counts of read.lua: of the first and the last row, then of the members that were
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
