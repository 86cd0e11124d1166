package top

// This file reads boards for `consumer top` and `consumer rank`.

import (
	"context"
	"errors"
	"fmt"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// Reader reads boards. It follows a reshard.
type Reader struct {
	*app.Reader
	views *reading.Reader
}

// Open connects to Redis. The caller must call Close.
func Open(ctx context.Context, cfg *config.Config) (*Reader, error) {
	r, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return nil, err
	}
	reader, err := newReader(r)
	if err != nil {
		r.Close()
	}
	return reader, err
}

func newReader(r *app.Reader) (*Reader, error) {
	views, err := app.NewReading(r)
	return &Reader{r, views}, err
}

// board is a board as read for display, with the progress of its workers.
type board struct {
	reading.View
	prefix string
	marked string // the member whose row is marked in text; empty: none
	note   string // about the rows; empty: none
}

func (r *Reader) shown(ctx context.Context, v *reading.View, err error) (*board, error) {
	return &board{View: *v, prefix: r.Config.Redis.Prefix}, r.explained(ctx, err)
}

// target finds the window with a name.
func (r *Reader) target(ctx context.Context, board string, p periods.Period, window string) (reading.Target, error) {
	t, err := r.views.Target(ctx, board, string(p), window)
	if missing, ok := errors.AsType[*reading.NotFoundError](err); ok {
		return t, cli.Usagef("%w", missing)
	}
	return t, r.explained(ctx, err)
}

// top reads a page of a board, in the window that a name selects at this moment.
func (r *Reader) top(ctx context.Context, name string, p periods.Period, window string, offset, limit int) (*board, error) {
	t, err := r.target(ctx, name, p, window)
	if err != nil {
		return nil, err
	}
	v, err := r.views.Rows(ctx, t, reading.Page{Offset: offset, Limit: limit})
	return r.shown(ctx, &v, err)
}

// Leaders returns the first members of a board in the current window of a period. A board that Redis has
// lost is an error.
func (r *Reader) Leaders(ctx context.Context, name string, p periods.Period, limit int) (ranking.Board, error) {
	b, err := r.top(ctx, name, p, windows.Current, 0, limit)
	if err != nil {
		return ranking.Board{}, err
	}
	return b.Board, b.lost()
}

// rank reads a member's row and around rows above and below. With shadow it reads only the member's row,
// also if the member is banned.
func (r *Reader) rank(ctx context.Context, t reading.Target, member string, around int, shadow bool) (*board, error) {
	var v reading.View
	var err error
	if shadow {
		v, err = r.views.Shadow(ctx, t, member)
	} else {
		v, err = r.views.Neighbours(ctx, t, member, around)
	}
	if len(v.Standings) == 0 { // Redis has no keys under the prefix
		v.Standings = []ranking.Standing{{Member: member}}
	}
	return r.shown(ctx, &v, err)
}

// explained explains an error of Redis. Errors of the archive need no explanation.
func (r *Reader) explained(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if away, ok := errors.AsType[*reading.ArchiveError](err); ok {
		return fmt.Errorf("Redis does not have the window, and the archive could not be read: %w", away)
	}
	return app.ExplainRedis(ctx, err, r.Config)
}
