package store

// Places of tuples and scores. A copy says what its board counted when it was taken, and not how its
// scores were laid out, so standings are compared by tuples; scores only with scores of the same copy.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/codec"
)

// Places is how many places have a better tuple than one, and how many have that one or a better one.
// Rows of that tuple are at the places from Better + 1 to AtLeast, if there are any. The places of hidden
// members count, and those of erased members up to the last row that is there.
type Places struct{ Better, AtLeast int64 }

// tuplesAtOnce is how many tuples a query looks for.
const tuplesAtOnce = 50

// compared is a column by which rows are in the order of their places.
type compared struct {
	expression, kind string
	fewest           bool // the smaller value is better
}

// Places finds tuples in a whole copy. Its fields say what is better; by the default rule, more points.
// The error is ErrGone if the copy isn't there.
func (s *Store) Places(ctx context.Context, w *Window, tuples []codec.Tuple) ([]Places, error) {
	columns := []compared{{"points", "bigint", false}}
	if w.Fields != nil {
		if _, err := codec.NewFields(w.Fields...); err != nil { // names go into the query
			return nil, s.fail(err, "read the fields of "+w.String())
		}
		columns = nil
		for _, f := range w.Fields {
			columns = append(columns, compared{"CAST(fields ->> '" + f.Name + "' AS bigint)", "bigint", f.Fewest})
		}
	}
	all := make([]Places, 0, len(tuples))
	for some := range slices.Chunk(tuples, tuplesAtOnce) {
		var values []any
		for _, tuple := range some {
			for i := range columns {
				values = append(values, tuple[i])
			}
		}
		found, err := s.places(ctx, w.ID, columns, values)
		if err != nil {
			return nil, s.fail(err, "find places in "+w.String())
		}
		all = append(all, found...)
	}
	return all, nil
}

// PlaceOfScore finds a score in a whole copy; the greater is better.
func (s *Store) PlaceOfScore(ctx context.Context, id int64, score float64) (Places, error) {
	found, err := s.places(ctx, id, []compared{{"score", "double precision", false}}, []any{score})
	if err != nil {
		return Places{}, s.fail(err, "find a score")
	}
	return found[0], nil
}

// places finds values, one for each column and place. Rows get worse as places rise, so one query halves
// the places for all of them: ten million rows take 24 steps, and no index of points or scores is needed.
// All rows up to the place lo are better, and none past hi. The row of an erased member has no values: the
// next row decides, and if no row is left up to hi, that is one past hi, or none.
func (s *Store) places(ctx context.Context, id int64, columns []compared, values []any) ([]Places, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	args := []any{id}
	n := len(values) / len(columns)
	wanted := make([]string, 0, 2*n)
	for i := range 2 * n { // each for better, then for at least
		row := fmt.Sprintf("(%d", i)
		for f, column := range columns {
			args = append(args, values[i/2*len(columns)+f])
			row += ", CAST($" + strconv.Itoa(len(args)) + " AS " + column.kind + ")"
		}
		wanted = append(wanted, row+")")
	}
	names := "i"
	for f := range columns {
		names += ", v" + strconv.Itoa(f)
	}
	higher := `coalesce((SELECT CASE WHEN wanted.i % 2 = 0 THEN ` + better(columns, false) + ` ELSE ` + better(columns, true) +
		` END FROM standings WHERE window_id = $1 AND place >= (lo + hi + 1) / 2 AND member IS NOT NULL ORDER BY place LIMIT 1), FALSE)`
	rows, err := s.read.QueryContext(ctx, `WITH RECURSIVE wanted (`+names+`) AS (VALUES `+strings.Join(wanted, ", ")+`), half (n, lo, hi) AS (
			SELECT i, CAST(0 AS bigint), rows_written FROM wanted, windows WHERE id = $1 AND state = 'whole'
			UNION ALL
			SELECT n, CASE WHEN `+higher+` THEN (lo + hi + 1) / 2 ELSE lo END, CASE WHEN `+higher+` THEN hi ELSE (lo + hi + 1) / 2 - 1 END
			FROM half JOIN wanted ON wanted.i = half.n WHERE lo < hi)
		SELECT n, lo FROM half WHERE lo = hi`, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err says what there is to say
	all, count := make([]Places, n), 0
	for rows.Next() {
		var i int
		var above int64
		if err := rows.Scan(&i, &above); err != nil {
			return nil, err
		}
		if i%2 == 0 {
			all[i/2].Better = above
		} else {
			all[i/2].AtLeast = above
		}
		count++
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if count != 2*n {
		return nil, ErrGone
	}
	return all, nil
}

// better is a condition: a row's columns are a better tuple than v0, v1, …, or the same.
func better(columns []compared, orSame bool) string {
	text := "FALSE"
	if orSame {
		text = "TRUE"
	}
	for i, column := range slices.Backward(columns) {
		compares := " > "
		if column.fewest {
			compares = " < "
		}
		v := "v" + strconv.Itoa(i)
		text = "(" + column.expression + compares + v + " OR " + column.expression + " = " + v + " AND " + text + ")"
	}
	return text
}
