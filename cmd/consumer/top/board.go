package top

// A board as `consumer top` and `consumer rank` read it: what Redis holds of it.

import (
	"context"
	"errors"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Reader reads boards.
type Reader struct{ *clients.Reader }

// Open dials Redis. Close closes it.
func Open(ctx context.Context, cfg *config.Config) (*Reader, error) {
	r, err := clients.OpenReader(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Reader{r}, nil
}

// read makes a board of what the store answers. A prefix under which there is nothing is
// an empty board: a consumer may just not have begun.
func (r *Reader) read(ctx context.Context, found ranking.Board, err error) (ranking.Board, error) {
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok && other.Found == "" {
		return found, nil
	}
	if err != nil {
		return ranking.Board{}, clients.ExplainRedis(ctx, err, r.Config)
	}
	return found, nil
}

// top reads a page of a board.
func (r *Reader) top(ctx context.Context, board string, w periods.Window, offset, limit int) (ranking.Board, error) {
	b, err := r.Boards.Top(ctx, board, w, offset, limit)
	if b, err = r.read(ctx, b, err); err != nil {
		return b, err
	}
	return b, r.name(ctx, &b)
}

// Leaders are the first members of a board in the current window of a period. A board that
// Redis has lost is an error.
func (r *Reader) Leaders(ctx context.Context, name string, p periods.Period, limit int) (ranking.Board, error) {
	rule, err := windows.Enabled(r.Config, string(p))
	if err != nil {
		return ranking.Board{}, err
	}
	w, err := windows.Find(ctx, r.Reader, &rule, windows.Current)
	if err != nil {
		return ranking.Board{}, err
	}
	found, err := r.top(ctx, name, w, 0, limit)
	if err != nil {
		return ranking.Board{}, err
	}
	b := r.shown(found)
	return found, b.lost()
}

// rank reads a member's row, and what is read with it, as of one moment.
func (r *Reader) rank(ctx context.Context, member string, read func() (ranking.Board, error)) (ranking.Board, error) {
	b, err := read()
	if b, err = r.read(ctx, b, err); err != nil {
		return b, err
	}
	if len(b.Standings) == 0 {
		b.Standings = []ranking.Standing{{Member: member}}
	}
	return b, r.name(ctx, &b)
}

// name says what the members are called, where names are counted.
func (r *Reader) name(ctx context.Context, b *ranking.Board) error {
	if r.Config.Fields.Name == "" {
		return nil
	}
	if err := r.Boards.Name(ctx, b); err != nil {
		return clients.ExplainRedis(ctx, err, r.Config)
	}
	return nil
}
