package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const rowColumns = `rank, member, points, fields, score, reached_at`

// ofWhole is a copy's rows while it is whole: what is being removed isn't shown in part.
const ofWhole = ` FROM standings WHERE window_id = $1 AND EXISTS (SELECT 1 FROM windows WHERE id = $1 AND state = 'whole')`

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scanRows reads rowColumns. The row is each's for its call alone.
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

// CountAtLeast is how many rows of a whole copy have this score or more: also the last rank of it.
func (s *Store) CountAtLeast(ctx context.Context, id int64, score float64) (int64, error) {
	return s.count(ctx, id, ">=", score)
}

// CountAbove is how many have more. The first rank with this score or less is the one after.
func (s *Store) CountAbove(ctx context.Context, id int64, score float64) (int64, error) {
	return s.count(ctx, id, ">", score)
}

// count halves the ranks in one query, since scores fall as ranks rise: ten million rows take 24
// looks, and no index of scores is needed. Of the ranks up to lo all compare so, of those past hi
// none.
func (s *Store) count(ctx context.Context, id int64, compares string, score float64) (n int64, err error) {
	higher := `(SELECT score ` + compares + ` $2 FROM standings WHERE window_id = $1 AND rank = (lo + hi + 1) / 2)`
	err = s.one(ctx, `WITH RECURSIVE half (lo, hi) AS (
			SELECT CAST(0 AS bigint), members FROM windows WHERE id = $1 AND state = 'whole'
			UNION ALL
			SELECT CASE WHEN `+higher+` THEN (lo + hi + 1) / 2 ELSE lo END, CASE WHEN `+higher+` THEN hi ELSE (lo + hi + 1) / 2 - 1 END
			FROM half WHERE lo < hi)
		SELECT lo FROM half WHERE lo = hi`, []any{id, score}, &n)
	if errors.Is(err, ErrNotFound) {
		err = ErrGone
	}
	return n, s.fail(err, "count standings")
}

// readAtOnce is how many rows Each reads a query.
const readAtOnce = 10_000

// Each calls do for every row of a whole copy, by rank; the row is do's for the call alone. It
// reads some thousand at a time, so that neither its memory grows nor a long read holds up the
// database. The error is ErrGone where the copy goes meanwhile, or do's.
func (s *Store) Each(ctx context.Context, id int64, do func(*Row) error) error {
	w, err := s.ByID(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && w.State != Whole {
		return s.fail(ErrGone, "read all standings")
	}
	if err != nil {
		return err
	}
	return s.fail(s.each(ctx, &w, do), "read all standings of "+w.String())
}

// each reads the ranks of a copy, of which none may be missing. A page is read before do gets it: do
// may take its time, while the query has ended.
func (s *Store) each(ctx context.Context, w *Window, do func(*Row) error) error {
	page := make([]Row, 0, min(w.Members, readAtOnce))
	for next := int64(1); next <= w.Members; {
		page = page[:0]
		limited, cancel := context.WithTimeout(ctx, readLimit)
		err := scanRows(limited, s.read, func(r *Row) error { page = append(page, *r); return nil },
			`SELECT `+rowColumns+ofWhole+` AND rank >= $2 AND rank < $3 ORDER BY rank`, w.ID, next, next+readAtOnce)
		cancel()
		if err == nil && len(page) == 0 {
			err = s.whole(ctx, w.ID)
		}
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("%w: the rank %d is missing", ErrDiffers, next)
		}
		for i := range page {
			if page[i].Rank != next {
				return fmt.Errorf("%w: the rank %d is missing", ErrDiffers, next)
			}
			next++
			if err := do(&page[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
