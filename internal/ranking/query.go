package ranking

// What is read of a window in one call to a shard.

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
)

// Query is what is read of a window in one call to a shard, as of one moment.
type Query struct {
	Board  string
	Window periods.Window
	Rows   Rows
	// Members to look up.
	Members []string
	// Hidden has members looked up who aren't shown, too, as they themselves see it: their rank is
	// the one that they would have.
	Hidden bool
	// Ties has how many members have more than each standing, and at least as many.
	Ties bool
	// Counts are scores: how many members have at least each.
	Counts []float64
}

// Rows are the rows to read: those around a place in the order of the window. A place is between
// two rows, or at an end.
//
//	…        Above rows
//	────     the place
//	…        Below rows
type Rows struct {
	From  From
	Skip  int   // how many rows the place is below what it is counted from; of FromBottom above
	Pivot Pivot // of FromPivot and FromNext
	Above int
	Below int
	// Full has as many rows read at an end of the window, those beyond it on the other side.
	Full bool
	// Least, if there is one, is the least score that is read.
	Least *float64
}

// From is what a place is counted from.
type From string

const (
	FromTop    From = "top"
	FromBottom From = "bottom"
	FromMember From = "member" // above the first of the members to look up; no rows where they aren't there
	FromPivot  From = "pivot"  // below whoever is above the pivot
	FromNext   From = "next"   // the same, and below the pivot's own row where it is there
)

// Pivot is a place in the order of a window: a score, and the id of a member who needn't be
// there. Above it is whoever has a greater score, or the same and a greater id, by bytes. With
// no id it is below whoever has at least the score.
type Pivot struct {
	Score  float64
	Member string
}

// TopPivot is one above which there is nobody.
func TopPivot() Pivot { return Pivot{Score: math.Inf(1)} }

// Part is what one shard has of a window: a Board of its own members alone, whose rows are
// followed by the members that were looked up.
type Part struct {
	Board
	Rows int // how many of Standings are rows
}

// CheckPage refuses a page that there can't be.
func CheckPage(board string, offset, limit int) error {
	if offset < 0 || limit < 0 || offset > math.MaxInt-limit {
		return Faultf("read %s: %d standings from offset %d on: both have to be 0 or more", board, limit, offset)
	}
	return nil
}

// Read reads a window in one call. Where nothing stands under the prefix the error is a
// *SchemaError, and there is a Part that says what is beside the scores.
func (s *Store) Read(ctx context.Context, q *Query) (Part, error) {
	p, err := s.readAgainst(ctx, *s.readAs.Load(), q)
	if s.fits(err) {
		return s.readAgainst(ctx, *s.readAs.Load(), q)
	}
	return p, err
}

// readAgainst reads where the schema is this one.
func (s *Store) readAgainst(ctx context.Context, schema string, q *Query) (Part, error) {
	call, err := s.readCall(schema, q)
	if err != nil {
		return Part{}, err
	}
	reply, err := s.Call(ctx, call.Script, call.Keys, call.Args...)
	return s.part(schema, q, reply, err)
}

// readCall is the call that a query is.
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

// checkScores refuses what no score can be compared with.
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

// arguments are those of read.lua about the rows.
func (r *Rows) arguments() []any {
	from, least := r.From, ""
	if r.Above == 0 && r.Below == 0 && from != FromPivot && from != FromNext {
		from = "" // who reads no rows around a pivot wants its place
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

// ties says to read.lua which scores are of the same points: not at all, by their whole part, or
// by all but so many bits.
func ties(on bool, l *codec.TupleLayout) string {
	switch {
	case !on:
		return ""
	case l.Packing.Kind == codec.Readable:
		return "0"
	}
	return strconv.Itoa(l.K)
}

// scoreText is a score as a text that reads as exactly that double: 17 digits do for any.
func scoreText(score float64) string {
	switch {
	case math.IsInf(score, 1):
		return "+inf"
	case math.IsInf(score, -1):
		return "-inf"
	}
	return strconv.FormatFloat(score, 'g', 17, 64)
}

// pivotText is scoreText of a place that a script compares scores with. No score is at the ends of
// what a double holds, and every Lua reads those, as it needn't the infinities.
func pivotText(score float64) string {
	return scoreText(max(-math.MaxFloat64, min(math.MaxFloat64, score)))
}
