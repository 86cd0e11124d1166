package deadletters

// This file implements consumer dead-letters export.

import (
	"context"
	"fmt"
	"os"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/safejson"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// export writes to the file out, or to stdout if out is empty. The file appears only when it is complete.
func export(ctx context.Context, p *cli.Program, cfg *config.Config, s scope, out string, withTime bool) (err error) {
	if out != "" {
		if _, err := os.Lstat(out); err == nil {
			return cli.Usagef("--out %s exists already: name another file, or remove it", out)
		}
	}
	r, err := open(ctx, p, &cfg.Kafka, s)
	if err != nil {
		return err
	}
	defer r.Close()
	to, finish, err := cli.Output(p.Stdout, "--out", out)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()

	_, onTerminal := terminal.Width(p.Stdout)
	seen := originals{}
	var written, others, without, batches, unread int64
	var line []byte
	err = r.each(ctx, out == "" && onTerminal, func(l *deadLetter) error {
		switch {
		case l.fault != "":
			others++
			return nil
		case !seen.add(l.source):
			return nil
		case l.batch():
			batches++
			unread += l.events()
			return nil
		case l.value == nil:
			without++
		}
		written++
		line = append(l.appendLine(line[:0], withTime), '\n')
		if _, err := to.Write(safejson.Escape(line)); err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w; the export is incomplete", err)
	}
	if out != "" {
		fmt.Fprintf(p.Stderr, "exported %s to %s\n", units.Plural(written, "dead letter"), out)
	}
	if len(r.none) > 0 {
		fmt.Fprintln(p.Stderr, "note: "+nothingOf(r.none))
	}
	if others > 0 {
		fmt.Fprintf(p.Stderr, "note: left out %s that no consumer wrote as a dead letter; list shows them\n", units.Plural(others, "record"))
	}
	if batches > 0 {
		fmt.Fprintf(p.Stderr, "note: left out %s for %s of record batches that the consumer could not read (too_large): they have no value to fix. Raise fold_memory and rebuild; list shows them\n",
			units.Plural(batches, "letter"), units.Plural(unread, "record"))
	}
	if without > 0 {
		fmt.Fprintf(p.Stderr, "note: %s without a value, which was too large; dead_letter has the position of the source record\n", units.Plural(without, "letter"))
	}
	return nil
}
