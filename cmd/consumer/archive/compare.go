package archive

// A copy compared with the same final window in Redis. Both are in the order of their ranks: a row that
// one of them lacks has no partner with the same score and id.

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
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

func periodOf(w *store.Window) periods.Period { return periods.Period(w.Period) }

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
	c := boards.Closed{Window: ledger.Window{Board: w.Board, Period: w.Period, Name: w.Name, Start: window.Start, End: window.End}, Revision: w.Revision}
	inRedis := archive.New(archive.Config{Boards: all}).Rows(ctx, &c, b.Members)
	// A hidden member still has the score that it had. One that is shown with that score has a partner.
	hidden := func(r *store.Row) (bool, error) {
		b, err := all.RankOfHidden(ctx, w.Board, window, r.Member)
		return len(b.Standings) == 1 && b.Standings[0].Rank > 0 && b.Standings[0].Score == r.Score, err
	}
	return sideBySide(s.Each(ctx, w.ID), inRedis, hidden)
}

// sideBySide goes through both. Below a hidden member ranks differ by one.
func sideBySide(archived, inRedis iter.Seq2[store.Row, error], hidden func(*store.Row) (bool, error)) (comparison, error) {
	c := comparison{is: same}
	add := func(member string, archive, redis *int64) {
		if c.is, c.different = differs, c.different+1; len(c.first) < mostShown {
			c.first = append(c.first, difference{member, archive, redis})
		}
	}
	nextArchived, stop := iter.Pull2(archived)
	defer stop()
	nextInRedis, stop := iter.Pull2(inRedis)
	defer stop()
	a, err, inA := nextArchived()
	if err != nil {
		return c, err
	}
	r, err, inR := nextInRedis()
	for err == nil && (inA || inR) {
		order := cmp.Or(cmp.Compare(r.Score, a.Score), strings.Compare(r.Member, a.Member))
		switch {
		case inA && inR && order == 0:
			if a.Rank-c.hidden != r.Rank && c.different == 0 {
				add(a.Member, new(a.Rank), new(r.Rank))
			}
			if a, err, inA = nextArchived(); err == nil {
				r, err, inR = nextInRedis()
			}
		case inA && (!inR || order < 0): // only the archive has it
			var away bool
			if away, err = hidden(&a); err != nil {
				return c, err
			}
			if away {
				c.hidden++
			} else {
				add(a.Member, new(a.Rank), nil)
			}
			a, err, inA = nextArchived()
		default:
			add(r.Member, nil, new(r.Rank))
			r, err, inR = nextInRedis()
		}
	}
	return c, err
}
