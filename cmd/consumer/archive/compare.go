package archive

// A copy beside what Redis has of the same final window. Both are in the order of their ranks, so they
// are gone through side by side: who is in one alone has no partner with the same score and id.

import (
	"cmp"
	"context"
	"strings"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// What became of comparing a copy with Redis.
const (
	same     = "same"
	differs  = "differs"
	absent   = "absent"         // Redis doesn't have the window
	other    = "other_revision" // it has another revision, or the window takes events again
	lost     = "lost"           // it has lost it
	notAsked = "not_compared"   // it is a backup, or of a period that isn't configured
)

// comparison is what was found.
type comparison struct {
	is        string
	different int64
	hidden    int64        // who isn't shown any more, by a ban
	first     []difference // the first of them
}

// mostShown is how many differences are named.
const mostShown = 10

// difference is a member whose row is in one alone, or in both with different ranks.
type difference struct {
	Member  string `json:"member"`
	Archive *int64 `json:"archive_rank"` // null: not there, or not with that score
	Redis   *int64 `json:"redis_rank"`
}

const rowsAtOnce = 1000

func periodOf(w *store.Window) periods.Period { return periods.Period(w.Period) }

// side is one of the two, page by page.
type side struct {
	rows []ranking.Standing
	next func(last *ranking.Standing) ([]ranking.Standing, error)
	last ranking.Standing
	any  bool
	end  bool
}

// row is the first that wasn't taken; nil at the end.
func (s *side) row() (*ranking.Standing, error) {
	if len(s.rows) == 0 && !s.end {
		var last *ranking.Standing
		if s.any {
			last = &s.last
		}
		var err error
		if s.rows, err = s.next(last); err != nil {
			return nil, err
		}
		s.end = len(s.rows) < rowsAtOnce
	}
	if len(s.rows) == 0 {
		return nil, nil
	}
	return &s.rows[0], nil
}

func (s *side) take() {
	s.last, s.any, s.rows = s.rows[0], true, s.rows[1:]
}

// compare compares a copy with what Redis has of its window.
func compare(ctx context.Context, s *store.Store, all *boards.Boards, w *store.Window) (comparison, error) {
	window := periods.Window{Period: periodOf(w), Name: w.Name, Start: w.Start.UnixMilli(), End: w.End.UnixMilli()}
	b, err := all.Top(ctx, w.Board, window, 0, 0)
	switch {
	case err != nil:
		return comparison{}, err
	case b.Lost != "":
		return comparison{is: lost}, nil
	case !b.Listed:
		return comparison{is: absent}, nil
	case b.Revision != w.Revision:
		return comparison{is: other}, nil
	}
	archived := &side{next: func(last *ranking.Standing) (rows []ranking.Standing, err error) {
		from := int64(1)
		if last != nil {
			from = last.Rank + 1
		}
		some, err := s.Rows(ctx, w.ID, from, rowsAtOnce)
		for _, r := range some {
			rows = append(rows, ranking.Standing{Rank: r.Rank, Member: r.Member, Score: r.Score})
		}
		return rows, err
	}}
	inRedis := &side{next: func(last *ranking.Standing) ([]ranking.Standing, error) {
		if last == nil {
			b, err := all.Top(ctx, w.Board, window, 0, rowsAtOnce)
			return b.Standings, err
		}
		b, err := all.After(ctx, w.Board, window, last.Pivot(), rowsAtOnce)
		return b.Standings, err
	}}
	// Who is hidden has the score still that they had; one who is shown with it has a partner.
	hidden := func(st *ranking.Standing) (bool, error) {
		b, err := all.RankOfHidden(ctx, w.Board, window, st.Member)
		return len(b.Standings) == 1 && b.Standings[0].Rank > 0 && b.Standings[0].Score == st.Score, err
	}
	return sideBySide(archived, inRedis, hidden)
}

// sideBySide goes through both. Ranks aren't compared where somebody is hidden: all below rose.
func sideBySide(archived, inRedis *side, hidden func(*ranking.Standing) (bool, error)) (comparison, error) {
	c := comparison{is: same}
	add := func(member string, archive, redis *int64) {
		if c.is, c.different = differs, c.different+1; len(c.first) < mostShown {
			c.first = append(c.first, difference{member, archive, redis})
		}
	}
	rank := func(st *ranking.Standing) *int64 { return new(st.Rank) }
	for {
		a, err := archived.row()
		if err != nil {
			return c, err
		}
		r, err := inRedis.row()
		if err != nil {
			return c, err
		}
		if a == nil && r == nil {
			return c, nil
		}
		switch order := compareRows(a, r); {
		case order == 0:
			if a.Rank-c.hidden != r.Rank && c.different == 0 {
				add(a.Member, rank(a), rank(r))
			}
			archived.take()
			inRedis.take()
		case order < 0: // the copy's alone
			away, err := hidden(a)
			if err != nil {
				return c, err
			}
			if away {
				c.hidden++
			} else {
				add(a.Member, rank(a), nil)
			}
			archived.take()
		default:
			add(r.Member, nil, rank(r))
			inRedis.take()
		}
	}
}

// compareRows orders as ranks do; a row that isn't there is after all others.
func compareRows(a, r *ranking.Standing) int {
	switch {
	case a == nil:
		return 1
	case r == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(r.Score, a.Score), strings.Compare(r.Member, a.Member))
}
