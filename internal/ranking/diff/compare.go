package diff

// Compares one window. Members that share a shard on one side may not share one on the other. So one side
// is read page by page, and the scores of a page's members are read on the other side; then the other way
// round.

import (
	"context"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/retry"
)

const readsAgain = 5 // how often differing members are read again while events come

// comparison is the comparison of one window.
type comparison struct {
	*Prefixes
	window *Window
	most   int
	differ map[string]ranking.Difference
}

// compare reads a window on both sides. Unless the ledgers show that both sides counted the same events, it
// reads the members that differ again, on both sides at once: if one side counts an event a moment later
// than the other, the member is equal then.
func (d *Prefixes) compare(ctx context.Context, w *Window, most int) error {
	c := &comparison{d, w, most, map[string]ranking.Difference{}}
	before, err := d.samePositions(ctx)
	if err != nil {
		return err
	}
	if err := c.scan(ctx, d.A, d.B, c.note); err != nil {
		return err
	}
	err = c.scan(ctx, d.B, d.A, func(member, b, a string) error {
		if a != "" {
			return nil // the first scan has compared it
		}
		return c.note(member, "", b)
	})
	if err != nil {
		return err
	}
	after, err := d.samePositions(ctx)
	if err != nil {
		return err
	}
	w.Exact = before != "" && before == after
	for read := 0; !w.Exact && len(c.differ) > 0 && read < readsAgain; read++ {
		if err := retry.Sleep(ctx, d.Again); err != nil {
			return err
		}
		members := slices.Sorted(maps.Keys(c.differ))
		clear(c.differ)
		if err := c.members(ctx, members); err != nil {
			return err
		}
	}
	for _, member := range slices.Sorted(maps.Keys(c.differ)) {
		w.Members = append(w.Members, c.differ[member])
	}
	return nil
}

// note stores a member if its standings differ. A score is text as Redis writes it, empty if the side
// doesn't have the member.
func (c *comparison) note(member, a, b string) error {
	w := c.window
	sets := ranking.Sets{Window: w.Window, Fields: w.fields, A: ranking.Set{Layout: w.a}, B: ranking.Set{Layout: w.b}}
	one, err := sets.Difference(member, a, b)
	if err != nil || same(one.A, one.B, w.a.Tick, w.b.Tick, w.End) {
		return err
	}
	if len(c.differ) >= c.most {
		w.More = true
		return nil
	}
	c.differ[member] = one
	return nil
}

// scan passes every member of one side to give, with its scores there and on the other side. It skips equal
// scores if the layouts are equal.
func (c *comparison) scan(ctx context.Context, one, other *inventory.View, give func(member, score, there string) error) error {
	for _, shard := range one.Stores() {
		err := shard.ScanScores(ctx, &c.window.Window, c.Pause, func(page []ranking.Scored) error {
			members := make([]string, len(page))
			for i := range page {
				members[i] = page[i].Member
			}
			scores, err := c.scores(ctx, other, members)
			if err != nil {
				return err
			}
			for _, m := range page {
				if there := scores[m.Member]; c.window.a != c.window.b || m.Score != there {
					if err := give(m.Member, m.Score, there); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// members compares some members, reading both sides at once.
func (c *comparison) members(ctx context.Context, members []string) error {
	var a, b map[string]string
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) { a, err = c.scores(both, c.A, members); return err })
	group.Go(func() (err error) { b, err = c.scores(both, c.B, members); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	for _, member := range members {
		if err := c.note(member, a[member], b[member]); err != nil {
			return err
		}
	}
	return nil
}

// scores reads the scores of members on one side, from all shards at once.
func (c *comparison) scores(ctx context.Context, of *inventory.View, members []string) (map[string]string, error) {
	homes := make([][]string, len(of.Stores()))
	for _, m := range members {
		home := ledger.Shards(len(homes)).Of(xxhash.Sum64String(m))
		homes[home] = append(homes[home], m)
	}
	found := make([][]ranking.Scored, len(homes))
	group, ctx := errgroup.WithContext(ctx)
	for i, some := range homes {
		if len(some) > 0 {
			group.Go(func() (err error) {
				found[i], err = of.Stores()[i].Scores(ctx, &c.window.Window, some)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make(map[string]string, len(members))
	for _, m := range slices.Concat(found...) {
		all[m.Member] = m.Score
	}
	return all, nil
}

// same reports whether two rows may come from the same events. A member on neither side was removed from
// both since it was read.
func same(a, b ranking.Row, tickA, tickB, end int64) bool {
	if !a.There || !b.There {
		return a.There == b.There
	}
	return !a.Foreign && !b.Foreign && a.Points == b.Points && a.Tuple == b.Tuple && overlap(a, b, tickA, tickB, end)
}

// overlap reports whether two ticks, each given by its first millisecond, have a common millisecond. Ticks
// are counted back from the window's end, each with its layout's length, and the tick that contains the
// window's start begins at the start.
func overlap(a, b ranking.Row, tickA, tickB, end int64) bool {
	last := func(r ranking.Row, tick int64) int64 {
		first := r.ReachedAt.UnixMilli()
		return end - 1 - (end-1-first)/tick*tick
	}
	return a.ReachedAt.UnixMilli() <= last(b, tickB) && b.ReachedAt.UnixMilli() <= last(a, tickA)
}
