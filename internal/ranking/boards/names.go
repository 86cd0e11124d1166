package boards

import (
	"context"

	"github.com/standings/standings/internal/ranking"
)

// Name fills in the names of a board's members.
func (b *Boards) Name(ctx context.Context, board *ranking.Board) error {
	members := make([]string, len(board.Standings))
	for i := range board.Standings {
		members[i] = board.Standings[i].Member
	}
	names, err := ranking.NamesEach(ctx, b.shards, members)
	if err != nil {
		return err
	}
	for i := range board.Standings {
		board.Standings[i].Name = names[board.Standings[i].Member]
	}
	return nil
}
