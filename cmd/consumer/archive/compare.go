package archive

// This file compares a copy with the same final window in Redis.

import (
	"context"

	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/boards"
)

// The results of a comparison:
const (
	same     = "same"
	differs  = "differs"
	absent   = "absent"         // Redis does not have the window
	other    = "other_revision" // Redis has another revision, or the window was reopened
	lost     = "lost"           // Redis lost the window
	notAsked = "not_compared"   // the copy is a backup, or its period is not configured
)

// comparison is the result of comparing one copy with Redis.
type comparison struct {
	is        string
	different int64
	hidden    int64        // members who are banned now
	first     []difference // at most mostShown
}

// mostShown is the maximum number of differences that are listed.
const mostShown = 10

// difference is a row that only the archive or only Redis has. A place counts the rows of hidden members
// too.
type difference struct {
	Member  string `json:"member"`
	Archive *int64 `json:"archive_place"` // null: the archive has no row of this member with this score
	Redis   *int64 `json:"redis_place"`
}

func periodOf(w *store.Window) periods.Period { return periods.Period(w.Period) }

// compare compares a copy with the same window in Redis.
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
	of := boards.Closed{Window: ledger.Window{Board: w.Board, Period: w.Period, Name: w.Name, Start: window.Start, End: window.End}, Revision: w.Revision}
	erased, err := s.Erasures(ctx)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{is: same}
	inRedis := func(yield func(store.Row, error) bool) {
		for r, err := range archive.New(archive.Config{Boards: all}).Rows(ctx, &of) {
			if err == nil && r.Rank == 0 {
				c.hidden++
			}
			if !yield(r, err) {
				return
			}
		}
	}
	err = archive.Compare(s.Each(ctx, w.ID), inRedis, erased, func(archived, inRedis *store.Row) bool {
		if c.is, c.different = differs, c.different+1; len(c.first) < mostShown {
			c.first = append(c.first, differenceOf(archived, inRedis))
		}
		return true
	})
	return c, err
}

// differenceOf returns the difference for a row that only one side has; the other side's row is nil.
func differenceOf(archived, inRedis *store.Row) difference {
	if archived == nil {
		return difference{inRedis.Member, nil, new(inRedis.Place)}
	}
	return difference{archived.Member, new(archived.Place), nil}
}
