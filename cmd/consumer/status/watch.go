package status

// This file repeats the status.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/terminal"
)

// look is the result of one reading.
type look struct {
	at     time.Time
	report *report
	err    error
}

// watch continues during outages, because outages are the reason to watch.
func watch(ctx context.Context, p *cli.Program, cfg *config.Config, every time.Duration, asJSON bool) error {
	changes := &cli.Changes{Program: p, JSON: asJSON}
	show := func(l *look, _ time.Duration) error { return writeChanged(changes, l) }
	if !asJSON && p.DrawsInPlace(p.Stdout) {
		screen, err := terminal.EnterScreen(p.Stdout)
		if err != nil {
			return err
		}
		defer screen.Leave()
		d := &drawing{coloured: p.Colours(p.Stdout)}
		show = func(l *look, waited time.Duration) error {
			if l != nil {
				d.last = l
			}
			d.waited = waited
			return screen.Draw(d.lines)
		}
	}
	return terminal.Watch(ctx, every, func(ctx context.Context) look {
		l := look{at: time.Now()}
		l.report, l.err = gather(ctx, cfg)
		return l
	}, func(l *look, waited time.Duration) error {
		if l != nil && l.err != nil {
			return l.err // an unavailable server is a problem in the report, not this error
		}
		return show(l, waited)
	})
}

// writeChanged writes a report if there is no terminal.
func writeChanged(changes *cli.Changes, l *look) error {
	if l == nil {
		return nil
	}
	return changes.Write(l.report, whatMatters(l.report), func() error {
		if err := show(changes.Program, l.report, false); err != nil {
			return err
		}
		if away := l.report.unreachable(); away != nil {
			return terminal.Write(changes.Program.Stdout, fmt.Sprintf("\n%v\n", away))
		}
		return nil
	})
}

// whatMatters returns a report without the values that change merely with time.
func whatMatters(s *report) *report {
	some := *s
	some.At, some.Partitions = "", slices.Clone(s.Partitions)
	for i := range some.Partitions {
		p := &some.Partitions[i]
		p.BehindMS, p.ReportedAt, p.DuplicatesMS = nil, nil, nil
	}
	return &some
}
