package cli

import (
	"encoding/json"
	"time"

	"github.com/spf13/pflag"

	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Watching holds the flags of a command that can repeat its output: whether it does, and the interval.
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

// Changes writes a report again each time it has changed: as text after an empty line, or as one line of
// JSON.
type Changes struct {
	Program *Program
	JSON    bool
	written string
}

// Write writes a report unless whatMatters is equal to that of the last report written. For people, it
// calls text to write the report.
func (c *Changes) Write(report, whatMatters any, text func() error) error {
	key, err := json.Marshal(whatMatters)
	if err != nil || string(key) == c.written {
		return err
	}
	first := c.written == ""
	c.written = string(key)
	if c.JSON {
		return writeJSONLine(c.Program.Stdout, report)
	}
	if !first {
		if err := terminal.Write(c.Program.Stdout, "\n"); err != nil {
			return err
		}
	}
	return text()
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
