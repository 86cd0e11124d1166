package diff

// Shards of several masters are read side by side, those of one after another: each master
// has the pause between two calls that it would have with one shard.

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ranking"
)

// byServer are shards, by their indexes, of each server.
func byServer(stores []*ranking.Store) map[string][]int {
	all := map[string][]int{}
	for i, s := range stores {
		all[s.Addr()] = append(all[s.Addr()], i)
	}
	return all
}

// onServers does something for every shard, and for one at a time on each server. The each
// that it is done with receives one member at a time.
func onServers(ctx context.Context, stores []*ranking.Store, to each, do func(ctx context.Context, shard int, to each) error) error {
	var mu sync.Mutex
	oneAtATime := func(member, a, b string) error {
		mu.Lock()
		defer mu.Unlock()
		return to(member, a, b)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, shards := range byServer(stores) {
		group.Go(func() error {
			for _, i := range shards {
				if err := do(ctx, i, oneAtATime); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
