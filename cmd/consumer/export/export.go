package export

// This file exports page by page, so that memory does not grow with the size of a window.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/standings/standings/cmd/consumer/cli"
	v1 "github.com/standings/standings/internal/api/v1"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// rowsAtOnce is the number of rows that one page reads.
const rowsAtOnce = 1000

// exporter exports windows and counts windows and rows.
type exporter struct {
	*options
	reader  *reading.Reader
	lines   v1.Lines
	windows int64
	rows    atomic.Int64
}

func export(ctx context.Context, p *cli.Program, cfg *config.Config, o *options) (err error) {
	if o.output != "" {
		if _, err := os.Lstat(o.output); err == nil {
			return cli.Usagef("--output %s exists already: name another file, or remove it", o.output)
		}
	}
	r, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	e := &exporter{options: o}
	if e.reader, err = app.NewReading(r); err != nil {
		return err
	}
	out, finish, err := cli.Output(p.Stdout, "--output", o.output)
	if err != nil {
		return err
	}
	defer func() {
		if err = finish(err); err == nil && o.output != "" {
			fmt.Fprintf(p.Stderr, "exported %s of %s to %s\n", units.Plural(e.rows.Load(), "row"), units.Plural(e.windows, "window"), o.output)
		}
	}()
	e.lines = v1.NewLines(out, v1.LineFormat{Name: o.format, Several: o.window == "", Raw: o.raw})
	if _, ok := terminal.Width(p.Stderr); ok {
		if _, both := terminal.Width(p.Stdout); !both || o.output != "" {
			shown := terminal.ShowProgress(p.Stderr, "exporting", "rows", 0, e.rows.Load)
			defer shown.Stop()
		}
	}
	if err := e.export(ctx); err != nil {
		if _, ok := errors.AsType[*reading.NotFoundError](err); ok {
			return cli.Usagef("%w", err)
		}
		var away *reading.ArchiveError
		if !errors.As(err, &away) && !errors.Is(err, errShown) && !errors.Is(err, reading.ErrOtherCopy) {
			err = app.ExplainRedis(ctx, err, cfg)
		}
		return fmt.Errorf("%w; the export is incomplete", err)
	}
	return nil
}

// errShown marks errors that do not come from Redis and need no explanation of Redis errors.
var errShown = errors.New("not exported")

func (e *exporter) export(ctx context.Context) error {
	if e.window != "" {
		v, err := e.one(ctx, e.board, e.period, e.window)
		if err == nil && !v.Listed {
			err = fmt.Errorf("%w: no event was counted in %s %s %s, and the archive does not have it", errShown, e.board, e.period, v.Window.Name)
		}
		return err
	}
	live, err := e.reader.Listed(ctx, e.board)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(live))
	for i := range live {
		w := &live[i]
		if e.period != "" && w.Period != e.period {
			continue
		}
		known[w.Listing()] = true
		// If its retention ends meanwhile, the rows come from the archive, or there are none.
		if err := e.listed(ctx, w.Board, w.Period, w.Name); err != nil {
			return err
		}
	}
	if err := e.archived(ctx, known); err != nil {
		return err
	}
	if e.windows == 0 && !e.all {
		return fmt.Errorf("%w: the board %s has no such window, in Redis or the archive", errShown, e.board)
	}
	return e.lines.Done(e.windows, e.rows.Load())
}

// archived exports the windows that only the archive has.
func (e *exporter) archived(ctx context.Context, known map[string]bool) error {
	for at := (store.Place{}); ; {
		some, err := e.reader.ArchivedWindows(ctx, e.board, e.period, at, rowsAtOnce)
		if err != nil {
			return err
		}
		for i := range some {
			w := &some[i]
			at = w.Place()
			if !known[w.Board+":"+w.Period+":"+w.Name] {
				if err := e.listed(ctx, w.Board, w.Period, w.Name); err != nil {
					return err
				}
			}
		}
		if len(some) < rowsAtOnce {
			return nil
		}
	}
}

// listed exports a listed window, unless its period is no longer configured.
func (e *exporter) listed(ctx context.Context, board, period, window string) error {
	if _, err := e.reader.Period(board, period); err != nil {
		return nil //nolint:nilerr // the window is left out
	}
	_, err := e.one(ctx, board, period, window)
	return err
}

// one exports a window. It writes nothing for a window that does not exist.
func (e *exporter) one(ctx context.Context, board, period, window string) (v reading.View, err error) {
	t, err := e.reader.Target(ctx, board, period, window)
	if err != nil {
		return v, err
	}
	if v, err = e.reader.Rows(ctx, t, reading.Page{Limit: rowsAtOnce}); err != nil || !v.Listed && v.Lost == "" {
		return v, err
	}
	t = v.Target
	t.Named = v.Window.Name // fixes the window by name, in case the current window changes
	var n int64
	if err := e.lines.Begin(&v); err != nil {
		return v, err
	}
	for {
		if v.Lost != "" {
			return v, fmt.Errorf("%w: Redis has lost %s %s %s (%s): consumer top shows the remedy", errShown, v.Name, period, v.Window.Name, v.Lost)
		}
		if err := e.lines.Rows(&v); err != nil {
			return v, fmt.Errorf("%w: write the rows: %w", errShown, err)
		}
		n += int64(len(v.Standings))
		e.rows.Add(int64(len(v.Standings)))
		if len(v.Standings) < rowsAtOnce {
			break
		}
		of, after := v, v.Standings[rowsAtOnce-1].Pivot()
		if v, err = e.reader.Rows(ctx, t, reading.Page{Limit: rowsAtOnce, After: &after}); err != nil {
			return v, err
		}
		if err := reading.SameCopy(&of, &v); err != nil {
			return v, err
		}
	}
	e.windows++
	return v, e.lines.End(&v, n)
}
