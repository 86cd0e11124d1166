package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/standings/standings/cmd/consumer/units"
)

// Watching is whether a command shows again and again what it shows, and how often it looks.
type Watching struct {
	On    bool
	Every time.Duration
}

// How often a command may look.
const (
	oftenest = 100 * time.Millisecond
	seldom   = time.Hour
)

// Flags adds --watch and --every.
func (w *Watching) Flags(set *pflag.FlagSet, every time.Duration) {
	w.Every = every
	set.BoolVar(&w.On, "watch", false, "show it again and again, until interrupted: in place on a terminal, else whenever it has changed")
	set.Var(Duration(&w.Every), "every", "with --watch: look every such `time`, 100ms to 1h")
}

// Check refuses what can't be carried out.
func (w *Watching) Check(set *pflag.FlagSet) error {
	if set.Changed("every") && !w.On {
		return Usagef("--every is for --watch")
	}
	if w.Every < oftenest || w.Every > seldom {
		return Usagef("--every has to be %s to %s", units.FormatDuration(oftenest), units.FormatDuration(seldom))
	}
	return nil
}
