package ranking

// Queries: what to read of a window in one call to a shard.

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
)

// Query is a read of a window in one call to a shard, as of one moment.
type Query struct {
	Board  string
	Window periods.Window
	Rows   Rows
	// Members are members to look up.
	Members []string
	// Hidden also looks up hidden members, as they see themselves: with the rank that they would have.
	Hidden bool
	// Ties requests, for each standing, how many members have more, and how many have at least as much.
	Ties bool
	// Counts are scores. The answer has the number of members with at least each score.
	Counts []float64
}

// Rows are the rows to read around a place in the order of the window. A place is between two rows, or at
// an end.
//
//	…        Above rows
//	────     the place
//	…        Below rows
type Rows struct {
	From  From
	Skip  int   // rows from the origin down to the place; with FromBottom, up to it
	Pivot Pivot // for FromPivot and FromNext
	Above int
	Below int
	// Full extends the page on its other side if rows would be past an end of the window.
	Full bool
	// Least, if set, is the lowest score to read.
	Least *float64
}

// From is the origin that a place is counted from.
type From string

const (
	FromTop    From = "top"
	FromBottom From = "bottom"
	FromMember From = "member" // above the first member to look up; no rows if the window doesn't have it
	FromPivot  From = "pivot"  // below all members that are above the pivot
	FromNext   From = "next"   // like FromPivot, but below the pivot's own row if it exists
)

// Pivot is a place in the order of a window: a score and a member's id, who need not be in the window. A
// member is above the pivot if its score is greater, or if its score is equal and its id is greater, by
// bytes. A pivot without an id is below every member with at least its score.
type Pivot struct {
	Score  float64
	Member string
}

// TopPivot returns a pivot that no member is above.
func TopPivot() Pivot { return Pivot{Score: math.Inf(1)} }

// Part is one shard's part of a window: a Board of the shard's own members, whose Standings are the rows
// followed by the members that were looked up.
type Part struct {
	Board
	Rows int // how many of Standings are rows
}

// CheckPage returns an error if offset and limit aren't a valid page.
func CheckPage(board string, offset, limit int) error {
	if offset < 0 || limit < 0 || offset > math.MaxInt-limit {
		return Faultf("read %s: %d standings from offset %d on: both have to be 0 or more", board, limit, offset)
	}
	return nil
}

// Read reads a window in one call. If there are no standings under the prefix, the error is a *SchemaError,
// and the Part has the state of the shard.
func (s *Store) Read(ctx context.Context, q *Query) (Part, error) {
	parts, errs := ReadEach(ctx, []*Store{s}, []Query{*q})
	return parts[0], errs[0]
}

// readCall returns the script call for a query.
func (s *Store) readCall(schema string, q *Query) (ScriptCall, error) {
	if _, ok := s.periods[string(q.Window.Period)]; !ok {
		return ScriptCall{}, Faultf("read %s: no period %q is configured", q.Board, q.Window.Period)
	}
	layout, ok := s.Layout(q.Board, string(q.Window.Period))
	if !ok {
		return ScriptCall{}, Faultf("read %s: the board has no %s windows", q.Board, q.Window.Period)
	}
	if err := q.checkScores(); err != nil {
		return ScriptCall{}, err
	}
	lw := listed(q.Board, q.Window)
	args := append([]any{schema, lw.Listing()}, q.Rows.arguments()...)
	args = append(args, option(q.Hidden), ties(q.Ties, &layout), len(q.Counts))
	for _, score := range q.Counts {
		args = append(args, scoreText(score))
	}
	for _, m := range q.Members {
		args = append(args, m)
	}
	k := s.keys
	set, beside := k.Both(lw.Listing())
	return ScriptCall{s, lua.Read, []string{k.Schema(), k.Windows(), k.Origin(), k.Ledger(), k.Workers(), set, beside}, args}, nil
}

// checkScores returns an error if a score in the query is NaN.
func (q *Query) checkScores() error {
	all := append([]float64{q.Rows.Pivot.Score}, q.Counts...)
	if q.Rows.Least != nil {
		all = append(all, *q.Rows.Least)
	}
	if slices.ContainsFunc(all, math.IsNaN) {
		return Faultf("read %s: a score that is no number", q.Board)
	}
	return nil
}

// arguments returns the arguments of read.lua about the rows.
func (r *Rows) arguments() []any {
	from, least := r.From, ""
	if r.Above == 0 && r.Below == 0 && from != FromPivot && from != FromNext {
		from = "" // no rows are wanted; only a pivot's place is
	}
	if r.Least != nil {
		least = scoreText(*r.Least)
	}
	return []any{string(from), r.Skip, pivotText(r.Pivot.Score), r.Pivot.Member, r.Above, r.Below, option(r.Full), least}
}

func option(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// ties tells read.lua which scores have equal points: empty for no ties, 0 for equal whole parts (readable),
// else the number of low bits that are ticks (wide).
func ties(on bool, l *codec.TupleLayout) string {
	switch {
	case !on:
		return ""
	case l.Packing.Kind == codec.Readable:
		return "0"
	}
	return strconv.Itoa(l.K)
}

// scoreText formats a score so that it parses to exactly the same double; 17 digits suffice for any.
func scoreText(score float64) string {
	switch {
	case math.IsInf(score, 1):
		return "+inf"
	case math.IsInf(score, -1):
		return "-inf"
	}
	return strconv.FormatFloat(score, 'g', 17, 64)
}

// pivotText formats a pivot's score for comparisons in a script, with infinities clamped to the largest
// doubles. No score is at the limits of a double, and every Lua can parse those limits, but not always
// infinities.
func pivotText(score float64) string {
	return scoreText(max(-math.MaxFloat64, min(math.MaxFloat64, score)))
}

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
