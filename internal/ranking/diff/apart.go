package diff

// Two sides with different numbers of shards: members that share a shard on one side don't
// on the other, and no script reaches both. One side is read page by page, and the other
// side's scores are asked from the shards of the members' hashes; then the other way round.

import (
	"context"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// apart are the sorted sets of a window on two sides.
type apart struct {
	window ledger.Window
	alike  bool // one layout on both sides
	a, b   *ranking.View
}

// byShard are members by the shard of so many that each is of.
func byShard(members []string, shards int) [][]string {
	all := make([][]string, shards)
	for _, m := range members {
		i := ledger.Shards(shards).Of(xxhash.Sum64String(m))
		all[i] = append(all[i], m)
	}
	return all
}

func (p *apart) scan(ctx context.Context, pause time.Duration, to each) error {
	err := p.half(ctx, pause, p.a, p.b, to)
	if err != nil {
		return err
	}
	return p.half(ctx, pause, p.b, p.a, func(member, b, a string) error {
		if a != "" {
			return nil // it was given by the first half
		}
		return to(member, a, b)
	})
}

// half gives the members of one side.
func (p *apart) half(ctx context.Context, pause time.Duration, one, other *ranking.View, to each) error {
	return onServers(ctx, one.Stores(), to, func(ctx context.Context, shard int, to each) error {
		return one.Stores()[shard].ScanScores(ctx, &p.window, pause, func(page []ranking.Scored) error {
			names := make([]string, len(page))
			for i := range page {
				names[i] = page[i].Member
			}
			scores, err := p.scores(ctx, other, names)
			if err != nil {
				return err
			}
			for _, m := range page {
				there := scores[m.Member]
				if p.alike && equal(m.Score, there) {
					continue
				}
				if err := to(m.Member, m.Score, there); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (p *apart) members(ctx context.Context, names []string, to each) error {
	var a, b map[string]string
	group, both := errgroup.WithContext(ctx) // at once, or a member would differ by what comes in between
	group.Go(func() (err error) { a, err = p.scores(both, p.a, names); return err })
	group.Go(func() (err error) { b, err = p.scores(both, p.b, names); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	for _, name := range names {
		if err := to(name, a[name], b[name]); err != nil {
			return err
		}
	}
	return nil
}

// scores are those of some members on one side, all shards asked at once.
func (p *apart) scores(ctx context.Context, of *ranking.View, members []string) (map[string]string, error) {
	found := make([][]ranking.Scored, len(of.Stores()))
	group, ctx := errgroup.WithContext(ctx)
	for i, some := range byShard(members, len(of.Stores())) {
		if len(some) > 0 {
			group.Go(func() (err error) {
				found[i], err = of.Stores()[i].Scores(ctx, &p.window, some)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make(map[string]string, len(members))
	for _, some := range found {
		for _, m := range some {
			all[m.Member] = m.Score
		}
	}
	return all, nil
}

// equal reports whether two texts are the same score: servers of two versions may write one
// in two ways.
func equal(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, failed := strconv.ParseFloat(b, 64)
	return err == nil && failed == nil && x == y
}
