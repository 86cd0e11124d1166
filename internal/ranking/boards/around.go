package boards

// Rows around a place, of all shards: each is asked for those around the place in its own order,
// and returns how many of its members are above it. So in one round trip both the rows and their
// ranks are known: whatever the shards hold, the rows of all around the place are the nearest of
// theirs, and above the place is the sum of what is above it in each.

import (
	"context"
	"slices"

	"github.com/standings/standings/internal/ranking"
)

// around reads the rows around a place that isn't counted from a member.
func (b *Boards) around(ctx context.Context, q *ranking.Query) (ranking.Board, error) {
	if b.onlyOne() {
		p, err := b.shards[0].Read(ctx, q)
		return p.Board, err
	}
	want, each := q.Rows, *q
	up, down := want.Above, want.Below // rows that are needed on each side
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

// nearest merges the rows of all shards that are on one side of the place, and returns at most need
// of them, the nearest, in order. Each shard was asked for as many as asked says. It isn't complete
// where a shard that returned as many, the last of which is nearer than the farthest that is needed,
// may have more that belong among them.
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
			continue // it has no more that are needed
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

// side is a shard's rows above its place, or below.
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

// cutAround has a board show the rows that are wanted of those above the place and below it.
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
