package boards

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ranking"
)

// Name says of a board that was read what its members are called.
func (b *Boards) Name(ctx context.Context, board *ranking.Board) error {
	members := make([][]string, len(b.shards))
	for _, st := range board.Standings {
		home := b.home(st.Member)
		members[home] = append(members[home], st.Member)
	}
	names := make([]map[string]string, len(b.shards))
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(triedAtOnce)
	for i, s := range b.shards {
		if len(members[i]) == 0 {
			continue
		}
		group.Go(func() (err error) {
			names[i], err = s.Names(going, members[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range board.Standings {
		st := &board.Standings[i]
		st.Name = names[b.home(st.Member)][st.Member]
	}
	return nil
}
