package store

// Places of tuples and scores. A copy records its board's fields but not the layout of its scores. So standings
// are compared by tuples, and scores only with scores of the same copy.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/codec"
)

// Places are the number of places with a better tuple than a given one, and with the same or a better one. Rows
// with this tuple, if any, are at the places from Better + 1 to AtLeast. The places of hidden members count, and
// those of erased members up to the last row that exists.
type Places struct{ Better, AtLeast int64 }

// tuplesAtOnce is the maximum number of tuples in a query.
const tuplesAtOnce = 50

// compared is a column that determines the rows' order.
type compared struct {
	expression, kind string
	fewest           bool // smaller values are better
}

// Places returns the places of tuples in a complete copy. The copy's fields define which values are better; with
// the default rule, more points are better. The error is ErrGone if the copy is missing or not complete.
func (s *Store) Places(ctx context.Context, w *Window, tuples []codec.Tuple) ([]Places, error) {
	columns := []compared{{"points", "bigint", false}}
	if w.Fields != nil {
		if _, err := codec.NewFields(w.Fields...); err != nil { // the query contains the names
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

// PlaceOfScore returns the places of a score in a complete copy. A greater score is better.
func (s *Store) PlaceOfScore(ctx context.Context, id int64, score float64) (Places, error) {
	found, err := s.places(ctx, id, []compared{{"score", "double precision", false}}, []any{score})
	if err != nil {
		return Places{}, s.fail(err, "find a score")
	}
	return found[0], nil
}

// places finds the places of values, which has one value per column and searched tuple. Since rows get worse as
// places rise, one query does a binary search for all tuples: ten million rows take 24 steps, without an index of
// points or scores. All rows up to place lo are better, and no row after hi is. The row of an erased member has no
// values, so the next row decides. If no row with values follows, the place counts as not better.
func (s *Store) places(ctx context.Context, id int64, columns []compared, values []any) ([]Places, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	args := []any{id}
	n := len(values) / len(columns)
	wanted := make([]string, 0, 2*n)
	for i := range 2 * n { // first for Better, then for AtLeast
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
	defer func() { _ = rows.Close() }() // Err reports all errors
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

// better returns an SQL condition: a row's columns are a better tuple than v0, v1, …, or, with orSame, the same.
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
