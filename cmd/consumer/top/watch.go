package top

// This file repeats a board.

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
)

// look is the result of one reading of a board.
type look struct {
	at      time.Time
	board   *board
	missing string // the text for a board that is lost or does not exist
	err     error
}

// ends reports whether watching must end because later readings cannot succeed. The schema that a reshard
// left behind is no reason: in a cluster, the new number of shards, which leads to the new ones, may become
// visible a moment later.
func (l *look) ends() bool {
	other, ok := errors.AsType[*ranking.SchemaError](l.err)
	return errors.Is(l.err, cli.ErrUsage) || ok && ranking.LeftFor(other.Found) == 0
}

// looker reads a board repeatedly.
type looker struct {
	*Reader
	rule periods.Rule
	name string
	page *pageFlags

	missing struct {
		window string
		at     time.Time
		text   string
	}
}

// watch shows a board until ctx ends.
func watch(ctx context.Context, p *cli.Program, f *pageFlags, name, period string) error {
	r, rule, err := openFor(ctx, p, name, period)
	if err != nil {
		return err
	}
	defer r.Close()
	zone := r.Config.ZoneOf(rule.Name())
	show := (&writer{changes: cli.Changes{Program: p, JSON: f.asJSON}, page: f, zone: zone}).show
	if !f.asJSON && p.DrawsInPlace(p.Stdout) {
		screen, err := terminal.EnterScreen(p.Stdout)
		if err != nil {
			return err
		}
		defer screen.Leave()
		d := &drawing{title: name + " " + period, page: f, zone: zoneOf(zone), coloured: p.Colours(p.Stdout)}
		show = func(l *look, waited time.Duration) error {
			if l != nil && l.ends() {
				return l.err
			}
			d.take(l, waited)
			return screen.Draw(d.lines)
		}
	}
	return terminal.Watch(ctx, f.watching.Every, (&looker{Reader: r, rule: rule, name: name, page: f}).look, show)
}

// look reads the board in the window that is selected at this moment.
func (k *looker) look(ctx context.Context) look {
	l := look{at: time.Now()}
	t, err := k.target(ctx, k.name, k.rule.Name(), k.page.window)
	if err != nil {
		l.err = err
		return l
	}
	b, err := k.top(ctx, t, k.page.offset, k.page.limit)
	if err != nil {
		l.err = err
		return l
	}
	l.board, l.missing = &b, k.whatIsMissing(ctx, &b)
	return l
}

// missingFor is how long the text for a missing board is reused, because composing it reads all windows
// that Redis lists.
const missingFor = 10 * time.Second

func (k *looker) whatIsMissing(ctx context.Context, b *board) string {
	if err := b.lost(); err != nil {
		return err.Error()
	}
	m := &k.missing
	if m.window != b.Window.Name || time.Since(m.at) >= missingFor || b.Listed {
		m.window, m.at, m.text = b.Window.Name, time.Now(), ""
		if err := b.missing(ctx, k.Reader); err != nil {
			m.text = err.Error()
		}
	}
	return m.text
}
