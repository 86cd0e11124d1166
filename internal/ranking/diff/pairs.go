package diff

// Both sides with one number of shards: a shard of either has the same members, and the
// same hash tag. So one script compares the two.

import (
	"context"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// paired are the sorted sets of a window, by shard.
type paired []ranking.Sets

func pairs(d *Prefixes, w *Window) paired {
	var all paired
	for i, a := range d.A.Stores() {
		all = append(all, ranking.Sets{
			Store: a, Window: w.Window, Fields: w.fields,
			A: ranking.Set{Key: a.Keys().Window(&w.Window), Layout: w.a},
			B: ranking.Set{Key: d.B.Stores()[i].Keys().Window(&w.Window), Layout: w.b},
		})
	}
	return all
}

func (p paired) scan(ctx context.Context, pause time.Duration, to each) error {
	stores := make([]*ranking.Store, len(p))
	for i := range p {
		stores[i] = p[i].Store
	}
	return onServers(ctx, stores, to, func(ctx context.Context, shard int, to each) error { return p[shard].Scan(ctx, pause, to) })
}

func (p paired) members(ctx context.Context, names []string, to each) error {
	for i, some := range byShard(names, len(p)) {
		if err := p[i].Members(ctx, some, to); err != nil {
			return err
		}
	}
	return nil
}
