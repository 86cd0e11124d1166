package boards

// Rows around a place, over all shards. Each shard returns its rows around the place, and the number of its
// members above it. So one round trip gives both the rows and their ranks: the nearest rows of the board
// are among the nearest rows of the shards, and the number of members above the place is the sum over the
// shards.

import (
	"context"
	"slices"

	"github.com/standings/standings/internal/ranking"
)

// around reads the rows around a place that is not given by a member.
func (b *Boards) around(ctx context.Context, q *ranking.Query) (ranking.Board, error) {
	if b.onlyOne() {
		p, err := b.shards[0].Read(ctx, q)
		return p.Board, err
	}
	want, each := q.Rows, *q
	up, down := want.Above, want.Below // rows needed on each side
	if want.Full {
		up, down = up+down, up+down
	}
	if want.From == ranking.FromBottom {
		up += want.Skip
	} else if down > 0 {
		down += want.Skip
	}
	each.Rows.Skip, each.Rows.Full, each.Ties = 0, false, false
	for askUp, askDown := b.share(up), b.share(down); ; askUp, askDown = min(up, 4*askUp), min(down, 4*askDown) {
		each.Rows.Above, each.Rows.Below = askUp, askDown
		parts, all, err := b.read(ctx, b.each(each))
		if err != nil {
			return all, err
		}
		above, complete := nearest(parts, up, askUp, true)
		below, enough := nearest(parts, down, askDown, false)
		if complete && enough {
			cutAround(&all, &want, above, below)
			return all, b.tie(ctx, q, &all)
		}
	}
}

// nearest merges the shards' rows on one side of the place, and returns the need nearest of them, in order.
// The query asked each shard for asked rows. complete is false if a shard returned that many, and its last one is
// nearer than the farthest row needed: it may have more rows that belong among them.
func nearest(parts []ranking.Part, need, asked int, above bool) (rows []ranking.Standing, complete bool) {
	sides := make([][]ranking.Standing, len(parts))
	for i := range parts {
		sides[i] = side(&parts[i], above)
		rows = append(rows, sides[i]...)
	}
	slices.SortFunc(rows, CompareRows)
	if len(rows) > need {
		if above {
			rows = rows[len(rows)-need:]
		} else {
			rows = rows[:need]
		}
	}
	for _, some := range sides {
		if asked == need || len(some) < asked {
			continue // the shard has no more rows that are needed
		}
		if len(rows) < need || asked == 0 {
			return nil, false
		}
		if above && CompareRows(some[0], rows[0]) > 0 || !above && CompareRows(some[len(some)-1], rows[need-1]) < 0 {
			return nil, false
		}
	}
	return rows, true
}

// side returns a shard's rows above its place, or those below it.
func side(p *ranking.Part, above bool) []ranking.Standing {
	at := 0
	for at < p.Rows && p.Standings[at].Rank <= p.Place {
		at++
	}
	if above {
		return p.Standings[:at]
	}
	return p.Standings[at:p.Rows]
}

// cutAround sets the board's standings to the wanted rows of those above and below the place.
func cutAround(all *ranking.Board, want *ranking.Rows, above, below []ranking.Standing) {
	rows, at := slices.Concat(above, below), len(above)
	first := all.Place - int64(at) + 1 // the rank of the first row
	if want.From == ranking.FromBottom {
		all.Place = max(0, all.Place-int64(want.Skip))
		at -= want.Skip
	} else {
		all.Place += int64(want.Skip)
		at += want.Skip
	}
	from, to := at-want.Above, at+want.Below
	if want.Full && from < 0 {
		to -= from
	} else if want.Full && to > len(rows) {
		from -= to - len(rows)
	}
	from, to = max(0, from), min(to, len(rows))
	if from < to {
		all.Standings = page(rows, first, from, to-from)
	}
}
