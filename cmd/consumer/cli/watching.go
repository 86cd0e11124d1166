package cli

// This file repeats a command's reading: in place on a terminal, otherwise after each change.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Watching holds the flags of a command that can repeat its output.
type Watching struct {
	On    bool
	Every time.Duration
}

// The limits of --every.
const (
	oftenest = 100 * time.Millisecond
	seldom   = time.Hour
)

// Flags adds --watch and --every.
func (w *Watching) Flags(set *pflag.FlagSet, every time.Duration) {
	w.Every = every
	set.BoolVar(&w.On, "watch", false, "update until interrupted: in place on a terminal, otherwise after each change")
	set.Var(Duration(&w.Every), "every", "with --watch: `interval` of updates, 100ms to 1h")
}

// Check rejects invalid flags.
func (w *Watching) Check(set *pflag.FlagSet) error {
	if set.Changed("every") && !w.On {
		return Usagef("--every requires --watch")
	}
	if w.Every < oftenest || w.Every > seldom {
		return Usagef("--every must be %s to %s", units.FormatDuration(oftenest), units.FormatDuration(seldom))
	}
	return nil
}

// Watch repeats a reading.
type Watch[T any] struct {
	Read func(context.Context) (*T, error)
	// Ends reports whether later readings cannot succeed after an error. Other errors are shown, and the
	// last result stays.
	Ends func(error) bool
	// Document returns a result as JSON, and the part of it that counts as a change.
	Document func(*T) (document, matters any)
	Text     func(*T) error // writes a result if there is no terminal
	Lines    func(s *Shown[T], width, height int) []string
}

// Shown is what a terminal shows.
type Shown[T any] struct {
	Last     *T        // nil: none yet
	At       time.Time // when Last was read
	Coloured bool

	trouble string        // the error of a later reading; empty if there is none
	waited  time.Duration // how long the current reading has taken
}

// Old reports whether later readings failed or take long.
func (s *Shown[T]) Old() bool { return s.trouble != "" || s.waited >= time.Second }

// Trouble returns lines that explain why the last result is old; none if it is not.
func (s *Shown[T]) Trouble(width int) (lines []string) {
	switch {
	case s.trouble != "":
		for _, line := range terminal.Wrapped(s.trouble, width) {
			lines = append(lines, terminal.Red.In(line, s.Coloured))
		}
	case s.Old():
		text := fmt.Sprintf("no reply for %s", s.waited.Truncate(time.Second))
		if s.Last != nil {
			text += fmt.Sprintf("; the rest is %s old", time.Since(s.At).Truncate(time.Second))
		}
		lines = append(lines, terminal.Yellow.In(terminal.Cut(text, width), s.Coloured))
	}
	return lines
}

// result is the result of one reading.
type result[T any] struct {
	at    time.Time
	value *T
	err   error
}

// Run shows the readings until ctx ends, which is not an error.
func (w *Watch[T]) Run(ctx context.Context, p *Program, every time.Duration, asJSON bool) error {
	show := w.changes(p, asJSON)
	if !asJSON && p.DrawsInPlace(p.Stdout) {
		screen, err := terminal.EnterScreen(p.Stdout)
		if err != nil {
			return err
		}
		defer screen.Leave()
		s := &Shown[T]{Coloured: p.Colours(p.Stdout)}
		show = func(r *result[T], waited time.Duration) error {
			s.take(r, waited)
			return screen.Draw(func(width, height int) []string { return w.Lines(s, width, height) })
		}
	}
	read := func(ctx context.Context) result[T] {
		r := result[T]{at: time.Now()}
		r.value, r.err = w.Read(ctx)
		return r
	}
	return terminal.Watch(ctx, every, read, func(r *result[T], waited time.Duration) error {
		if r != nil && r.err != nil && w.Ends(r.err) {
			return r.err
		}
		return show(r, waited)
	})
}

func (s *Shown[T]) take(r *result[T], waited time.Duration) {
	s.waited = waited
	switch {
	case r == nil:
	case r.err != nil:
		s.trouble = r.err.Error()
	default:
		s.Last, s.At, s.trouble = r.value, r.at, ""
	}
}

// changes writes a result each time it has changed: as text after an empty line, or as one line of JSON. It
// reports on stderr, once each, that readings fail and that they succeed again.
func (w *Watch[T]) changes(p *Program, asJSON bool) func(*result[T], time.Duration) error {
	var written []byte
	trouble := ""
	return func(r *result[T], _ time.Duration) error {
		if r == nil {
			return nil
		}
		was := trouble
		if trouble = ""; r.err != nil {
			trouble = terminal.OneLine(r.err.Error())
		}
		switch {
		case trouble != was && trouble != "":
			fmt.Fprintf(p.Stderr, "consumer: %s\n", trouble)
		case trouble != was:
			fmt.Fprintln(p.Stderr, "consumer: reading works again")
		}
		if r.err != nil {
			return nil //nolint:nilerr // the error is written; watching continues
		}
		document, matters := w.Document(r.value)
		key, err := json.Marshal(matters)
		if err != nil || bytes.Equal(key, written) {
			return err
		}
		first := written == nil
		written = key
		if asJSON {
			return writeJSON(p.Stdout, document, "")
		}
		if !first {
			if err := terminal.Write(p.Stdout, "\n"); err != nil {
				return err
			}
		}
		return w.Text(r.value)
	}
}
