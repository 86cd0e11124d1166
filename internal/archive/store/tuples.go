package store

// Places of tuples: how many rows are better. What a board counted when a copy was taken stands in
// the copy, and how its scores were laid out doesn't, so tuples are compared and not scores.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/codec"
)

// Places is how many rows have a better tuple than one, and how many have that one or a better one.
// So rows of that tuple have the ranks from Better + 1 to AtLeast, if there are any.
type Places struct{ Better, AtLeast int64 }

// tuplesAtOnce is how many tuples a query looks for.
const tuplesAtOnce = 50

// Places finds tuples in a whole copy: better is what its fields say; by the default rule, who has
// more points. Rows fall as ranks rise, so ranks are halved, as by CountAtLeast; a query does it for
// several tuples. The error is ErrGone where the copy isn't there.
func (s *Store) Places(ctx context.Context, w *Window, tuples []codec.Tuple) ([]Places, error) {
	columns, fewest := []string{"points"}, []bool{false}
	if w.Fields != nil {
		if _, err := codec.NewFields(w.Fields...); err != nil { // names go into the query
			return nil, s.fail(err, "read the fields of "+w.String())
		}
		columns, fewest = nil, nil
		for _, f := range w.Fields {
			columns = append(columns, "CAST(fields ->> '"+f.Name+"' AS bigint)")
			fewest = append(fewest, f.Fewest)
		}
	}
	all := make([]Places, 0, len(tuples))
	for some := range slices.Chunk(tuples, tuplesAtOnce) {
		found, err := s.places(ctx, w.ID, columns, fewest, some)
		if err != nil {
			return nil, s.fail(err, "find places in "+w.String())
		}
		all = append(all, found...)
	}
	return all, nil
}

func (s *Store) places(ctx context.Context, id int64, columns []string, fewest []bool, tuples []codec.Tuple) ([]Places, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	args := []any{id}
	wanted := make([]string, 0, 2*len(tuples))
	for i := range 2 * len(tuples) { // each for better, then for at least
		row := fmt.Sprintf("(%d", i)
		for f := range columns {
			args = append(args, tuples[i/2][f])
			row += ", CAST($" + strconv.Itoa(len(args)) + " AS bigint)"
		}
		wanted = append(wanted, row+")")
	}
	names := "i"
	for f := range columns {
		names += ", v" + strconv.Itoa(f)
	}
	higher := `(SELECT CASE WHEN wanted.i % 2 = 0 THEN ` + better(columns, fewest, false) + ` ELSE ` + better(columns, fewest, true) +
		` END FROM standings WHERE window_id = $1 AND rank = (lo + hi + 1) / 2)`
	rows, err := s.read.QueryContext(ctx, `WITH RECURSIVE wanted (`+names+`) AS (VALUES `+strings.Join(wanted, ", ")+`), half (n, lo, hi) AS (
			SELECT i, CAST(0 AS bigint), members FROM wanted, windows WHERE id = $1 AND state = 'whole'
			UNION ALL
			SELECT n, CASE WHEN `+higher+` THEN (lo + hi + 1) / 2 ELSE lo END, CASE WHEN `+higher+` THEN hi ELSE (lo + hi + 1) / 2 - 1 END
			FROM half JOIN wanted ON wanted.i = half.n WHERE lo < hi)
		SELECT n, lo FROM half WHERE lo = hi`, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err says what there is to say
	all, count := make([]Places, len(tuples)), 0
	for rows.Next() {
		var i int
		var n int64
		if err := rows.Scan(&i, &n); err != nil {
			return nil, err
		}
		if i%2 == 0 {
			all[i/2].Better = n
		} else {
			all[i/2].AtLeast = n
		}
		count++
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if count != 2*len(tuples) {
		return nil, ErrGone
	}
	return all, nil
}

// better is a condition: a row's columns are a better tuple than v0, v1, …, or the same.
func better(columns []string, fewest []bool, orSame bool) string {
	text := "FALSE"
	if orSame {
		text = "TRUE"
	}
	for i, column := range slices.Backward(columns) {
		compares := " > "
		if fewest[i] {
			compares = " < "
		}
		v := "v" + strconv.Itoa(i)
		text = "(" + column + compares + v + " OR " + column + " = " + v + " AND " + text + ")"
	}
	return text
}
