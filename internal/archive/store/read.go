package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

const rowColumns = `rank, member, points, fields, score, reached_at`

// ofCopy are a copy's rows in any state. ofWhole are none unless it is whole: a copy that is being
// removed isn't shown in part.
const ofCopy = ` FROM standings WHERE window_id = $1`
const ofWhole = ` FROM standings WHERE window_id = $1 AND EXISTS (SELECT 1 FROM windows WHERE id = $1 AND state = 'whole')`

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scanRows reads rowColumns; each must not retain the row.
func scanRows(ctx context.Context, from querier, each func(*Row) error, query string, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err says what there is to say
	for rows.Next() {
		var r Row
		var points sql.NullInt64
		var fields sql.NullString
		var reached instant
		if err := rows.Scan(&r.Rank, &r.Member, &points, &fields, &r.Score, &reached); err != nil {
			return err
		}
		r.Member, r.ReachedAt = memberOf(r.Member), reached.ms
		if points.Valid {
			r.Tuple[0] = points.Int64
		} else if r.Tuple, err = parseTuple(fields.String); err != nil {
			return fmt.Errorf("rank %d: %w", r.Rank, err)
		}
		if err := each(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list reads rows of a copy, within a read's time. Where there are none it says whether that is
// so because the copy isn't there.
func (s *Store) list(ctx context.Context, id int64, query string, args ...any) ([]Row, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var all []Row
	err := scanRows(ctx, s.read, func(r *Row) error { all = append(all, *r); return nil },
		`SELECT `+rowColumns+ofWhole+query, append([]any{id}, args...)...)
	if err == nil && len(all) == 0 {
		err = s.whole(ctx, id)
	}
	return all, err
}

// whole is ErrGone for a copy that isn't whole, or isn't there.
func (s *Store) whole(ctx context.Context, id int64) error {
	var one int
	err := s.one(ctx, `SELECT 1 FROM windows WHERE id = $1 AND state = 'whole'`, []any{id}, &one)
	if errors.Is(err, ErrNotFound) {
		return ErrGone
	}
	return err
}

// Rows are up to limit rows of a whole copy: from a rank on downwards, or, for a negative one, from
// the bottom upwards, where -1 is the last. The error is ErrGone where the copy isn't there.
func (s *Store) Rows(ctx context.Context, id, from int64, limit int) (all []Row, err error) {
	if from >= 0 {
		all, err = s.list(ctx, id, ` AND rank >= $2 ORDER BY rank LIMIT $3`, from, limit)
	} else {
		all, err = s.list(ctx, id, ` AND rank <= (SELECT members + 1 + $2 FROM windows WHERE id = $1) ORDER BY rank DESC LIMIT $3`, from, limit)
	}
	return all, s.fail(err, "read standings")
}

// Member is a member's row of a whole copy: ErrNotFound if there is none, ErrGone if the copy isn't
// there.
func (s *Store) Member(ctx context.Context, id int64, member string) (Row, error) {
	all, err := s.list(ctx, id, ` AND `+ofMembers(`$2`), storedMember(member))
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Row{}, s.fail(err, "read a member's standing")
	}
	return all[0], nil
}

// membersAtOnce is how many members a query has.
const membersAtOnce = 500

// Members are the rows of some members of a whole copy, by rank; who has none is left out.
func (s *Store) Members(ctx context.Context, id int64, members []string) ([]Row, error) {
	var all []Row
	for some := range slices.Chunk(members, membersAtOnce) {
		in := make([]string, len(some))
		args := make([]any, len(some))
		for i, member := range some {
			in[i], args[i] = "$"+strconv.Itoa(i+2), storedMember(member)
		}
		rows, err := s.list(ctx, id, ` AND `+ofMembers(strings.Join(in, ",")), args...)
		if err != nil {
			return nil, s.fail(err, "read members' standings")
		}
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b Row) int { return int(a.Rank - b.Rank) })
	return slices.CompactFunc(all, func(a, b Row) bool { return a.Rank == b.Rank }), nil
}

// readAtOnce is the number of rows of a query that reads a whole copy.
const readAtOnce = 10_000

// Each returns every row of a whole copy, by rank. It reads some thousand rows at a time, so that its
// memory stays flat and no query takes long. An error is the last: ErrGone if the copy is removed meanwhile.
func (s *Store) Each(ctx context.Context, id int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		w, err := s.ByID(ctx, id)
		if errors.Is(err, ErrNotFound) || err == nil && w.State != Whole {
			err = ErrGone
		}
		n := int64(0)
		if err == nil {
			for row, failed := range s.pages(ctx, id, ofWhole) {
				if err = failed; err != nil {
					break
				}
				if n++; !yield(row, nil) {
					return
				}
			}
		}
		if err == nil && n != w.Members {
			if err = s.whole(ctx, id); err == nil {
				err = fmt.Errorf("%w: it has %d rows, and was written with %d", ErrDiffers, n, w.Members)
			}
		}
		if err != nil {
			yield(Row{}, s.fail(err, "read all standings of "+w.String()))
		}
	}
}

// pages returns the rows of a copy, by rank; none may be missing. A page is read before its rows are
// returned: the caller may take its time.
func (s *Store) pages(ctx context.Context, id int64, from string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var page []Row
		for n := int64(0); ; {
			page = page[:0]
			limited, cancel := context.WithTimeout(ctx, readLimit)
			err := scanRows(limited, s.read, func(r *Row) error { page = append(page, *r); return nil },
				`SELECT `+rowColumns+from+` AND rank > $2 AND rank <= $3 ORDER BY rank`, id, n, n+readAtOnce)
			cancel()
			if err != nil {
				yield(Row{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for i := range page {
				if n++; page[i].Rank != n {
					yield(Row{}, fmt.Errorf("%w: the rank %d is missing", ErrDiffers, n))
					return
				}
				if !yield(page[i], nil) {
					return
				}
			}
		}
	}
}
