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

const rowColumns = `place, rank, member, points, fields, score, reached_at`

// ofCopy selects a copy's rows in any state. ofWhole selects none unless the copy is complete, so that readers
// never see part of a copy that is being removed.
const ofCopy = ` FROM standings WHERE window_id = $1`
const ofWhole = ` FROM standings WHERE window_id = $1 AND EXISTS (SELECT 1 FROM windows WHERE id = $1 AND state = 'whole')`

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scanRows reads rowColumns and calls each; each must not retain the row.
func scanRows(ctx context.Context, from querier, each func(*Row) error, query string, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err reports all errors
	for rows.Next() {
		var r Row
		var rank, points sql.NullInt64
		var member, fields sql.NullString
		var score sql.NullFloat64
		var reached instant
		if err := rows.Scan(&r.Place, &rank, &member, &points, &fields, &score, &reached); err != nil {
			return err
		}
		r.Rank, r.Member, r.Score, r.ReachedAt = rank.Int64, memberOf(member.String), score.Float64, reached.ms
		if points.Valid {
			r.Tuple[0] = points.Int64
		} else if member.Valid {
			if r.Tuple, err = parseTuple(fields.String); err != nil {
				return fmt.Errorf("place %d: %w", r.Place, err)
			}
		}
		if err := each(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list reads rows of a copy, within readLimit. If there are none and the copy is not complete, the error is
// ErrGone.
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

// whole returns ErrGone if a copy is missing or not complete.
func (s *Store) whole(ctx context.Context, id int64) error {
	var one int
	err := s.one(ctx, `SELECT 1 FROM windows WHERE id = $1 AND state = 'whole'`, []any{id}, &one)
	if errors.Is(err, ErrNotFound) {
		return ErrGone
	}
	return err
}

// Rows returns the rows of a complete copy between two places, inclusive. The error is ErrGone if the copy is
// missing or not complete.
func (s *Store) Rows(ctx context.Context, id, from, to int64) ([]Row, error) {
	all, err := s.list(ctx, id, ` AND place BETWEEN $2 AND $3 ORDER BY place`, from, to)
	return all, s.fail(err, "read standings")
}

// membersAtOnce is the maximum number of members in a query.
const membersAtOnce = 500

// Members returns the rows of members in a complete copy, by place. Members without a row are omitted.
func (s *Store) Members(ctx context.Context, id int64, members []string) ([]Row, error) {
	var all []Row
	for some := range slices.Chunk(members, membersAtOnce) {
		in, args := parameters(id, some)
		rows, err := s.list(ctx, id, ` AND `+ofMembers(in), args[1:]...)
		if err != nil {
			return nil, s.fail(err, "read members' standings")
		}
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b Row) int { return int(a.Place - b.Place) })
	return slices.CompactFunc(all, func(a, b Row) bool { return a.Place == b.Place }), nil
}

// PlacesOf returns the places of members in a complete copy. Members without a row are omitted.
func (s *Store) PlacesOf(ctx context.Context, id int64, members []string) (map[string]int64, error) {
	all := make(map[string]int64, len(members))
	for some := range slices.Chunk(members, membersAtOnce) {
		in, args := parameters(id, some)
		err := s.placesOf(ctx, all, `SELECT member, place FROM members WHERE window_id = $1 AND member IN (`+in+`)`, args)
		if err != nil {
			return nil, s.fail(err, "find members' places")
		}
	}
	return all, nil
}

func (s *Store) placesOf(ctx context.Context, all map[string]int64, query string, args []any) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err reports all errors
	for rows.Next() {
		var member string
		var place int64
		if err := rows.Scan(&member, &place); err != nil {
			return err
		}
		all[memberOf(member)] = place
	}
	return rows.Err()
}

// parameters returns placeholders from $2 on for a query about members of window $1, and the arguments.
func parameters(id int64, members []string) (in string, args []any) {
	texts := make([]string, len(members))
	args = append(make([]any, 0, len(members)+1), id)
	for i, member := range members {
		texts[i] = "$" + strconv.Itoa(i+2)
		args = append(args, storedMember(member))
	}
	return strings.Join(texts, ","), args
}

// readAtOnce is the number of rows per query when a whole copy is read.
const readAtOnce = 10_000

// Each returns every row of a complete copy, by place. It reads some thousand rows at a time, so that memory stays
// constant and no query takes long. An error ends the sequence: ErrGone if the copy is removed meanwhile.
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
		if err == nil && n != w.Places() {
			if err = s.whole(ctx, id); err == nil {
				err = fmt.Errorf("%w: it has %d rows, and was written with %d", ErrDiffers, n, w.Places())
			}
		}
		if err != nil {
			yield(Row{}, s.fail(err, "read all standings of "+w.String()))
		}
	}
}

// pages returns the rows of a copy, by place. A missing place or rank is an error. Each page is read before its
// rows are returned, so a slow caller does not hold a query open.
func (s *Store) pages(ctx context.Context, id int64, from string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var page []Row
		for n, ranks := int64(0), int64(0); ; {
			page = page[:0]
			limited, cancel := context.WithTimeout(ctx, readLimit)
			err := scanRows(limited, s.read, func(r *Row) error { page = append(page, *r); return nil },
				`SELECT `+rowColumns+from+` AND place > $2 AND place <= $3 ORDER BY place`, id, n, n+readAtOnce)
			cancel()
			if err != nil {
				yield(Row{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for i := range page {
				if n++; page[i].Place != n {
					yield(Row{}, fmt.Errorf("%w: the place %d is missing", ErrDiffers, n))
					return
				}
				if page[i].Rank > 0 {
					if ranks++; page[i].Rank != ranks {
						yield(Row{}, fmt.Errorf("%w: the rank %d is missing", ErrDiffers, ranks))
						return
					}
				}
				if !yield(page[i], nil) {
					return
				}
			}
		}
	}
}
