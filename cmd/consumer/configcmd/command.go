// Package configcmd implements the command config: it shows every setting with its value and source, and
// each period's layout.
package configcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Command returns the config command for a program.
func Command(p *cli.Program) *cobra.Command {
	var asJSON, asMarkdown bool
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration and its sources",
		Long: `Shows the value of every setting and its source: default, file or environment. Then it shows
each period's layout, and its current and next window by this machine's clock. If the configuration
is invalid, it lists all errors and the exit code is 2.`,
		Args: cli.ExactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			if asMarkdown {
				return config.WriteMarkdown(p.Stdout)
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			layouts, warnings, err := l.Config.Layouts(time.Now())
			if err != nil {
				return err
			}
			boards, _, err := l.Config.BoardReports()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(p.Stdout, l, layouts, boards, warnings)
			}
			return writeTable(p.Stdout, l, layouts, boards, warnings)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&asMarkdown, "markdown", false, "write a reference of all settings as Markdown")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

func writeTable(w io.Writer, l *config.Loaded, layouts []config.LayoutReport, boards []config.BoardReport, warnings []string) error {
	var b strings.Builder
	t := terminal.NewTable("KEY", "VALUE", "FROM")
	for _, s := range l.Settings {
		shown := s.Shown()
		if s.Key == "boards" && len(boards) > 0 {
			shown = namesOf(boards) // a table below shows their rules
		}
		t.Add(s.Key, cmp.Or(shown, "-"), s.From.String())
	}
	t.Write(&b)
	fmt.Fprintf(&b, "\nFixed under a prefix: %s\n\n", strings.Join(fixed(l), ", "))
	t = terminal.NewTable("PERIOD", "LAYOUT", "K", "TICK", "POINTS", "REACHED_AT", "RETENTION")
	for _, r := range layouts {
		tick := units.FormatDuration(time.Duration(r.TickMS) * time.Millisecond)
		t.Add(r.Period, r.Layout, strconv.Itoa(r.K), tick, fmt.Sprintf("%d to %d", r.MinPoints, r.MaxPoints), "to "+tick, r.Retention)
	}
	t.Write(&b)
	b.WriteString("\n")
	t = terminal.NewTable("PERIOD", "WINDOWS", "CURRENT", "NEXT", "NEXT STARTS", "LATENESS")
	for _, r := range layouts {
		current, next, starts := "-", "-", "-"
		if r.Current != nil {
			current = r.Current.Name
		}
		if r.Next != nil {
			next, starts = r.Next.Name, r.Next.Start
		}
		t.Add(r.Period, r.Windows, current, next, starts, r.Lateness)
	}
	t.Write(&b)
	writeBoards(&b, boards, l)
	for _, warning := range warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", warning)
	}
	return terminal.Write(w, b.String())
}

func namesOf(boards []config.BoardReport) string {
	names := make([]string, len(boards))
	for i, b := range boards {
		names[i] = b.Board
	}
	return strings.Join(names, ",")
}

// writeBoards writes the configured boards: their rules, and the layout of each of their periods.
func writeBoards(b *strings.Builder, boards []config.BoardReport, l *config.Loaded) {
	if len(boards) == 0 {
		return
	}
	changedBy := ""
	for _, s := range l.Settings {
		if s.Key == "boards" {
			changedBy = s.ChangedBy
		}
	}
	fmt.Fprintf(b, "\nBoards can be added. A board's score and fields are fixed under a prefix, except by %s.\n\n", changedBy)
	t := terminal.NewTable("BOARD", "SCORE", "FIELD", "VALUES", "BETTER")
	for _, board := range boards {
		for i, f := range board.Fields {
			name, score := board.Board, board.Score
			if i > 0 {
				name, score = "", ""
			}
			t.Add(name, score, f.Name, fmt.Sprintf("%d to %d", f.Min, f.Max), f.Order)
		}
	}
	t.Write(b)
	b.WriteByte('\n')
	t = terminal.NewTable("BOARD", "PERIOD", "LAYOUT", "K", "TICK", "LARGEST PACKED")
	for _, board := range boards {
		for _, l := range board.Layouts {
			t.Add(board.Board, l.Period, l.Layout, strconv.Itoa(l.K), units.FormatDuration(time.Duration(l.TickMS)*time.Millisecond), strconv.FormatInt(l.Largest, 10))
		}
	}
	t.Write(b)
}

// fixed lists the settings that cannot be changed once there are standings. Settings of periods are listed
// once, as periods.<name>.layout. The settings that enable a period are not listed, because periods can be
// added.
func fixed(l *config.Loaded) []string {
	var keys []string
	for _, s := range l.Settings {
		if !s.Fixed || strings.HasPrefix(s.Key, "periods.") && strings.HasSuffix(s.Key, ".enabled") {
			continue
		}
		key := s.Key
		if parts := strings.Split(key, "."); parts[0] == "periods" {
			parts[1] = "<name>"
			key = strings.Join(parts, ".")
		}
		if s.ChangedBy != "" {
			key += " (but by " + s.ChangedBy + ")"
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// report is the JSON of config; docs/json.md describes its fields.
type report struct {
	Settings []setting             `json:"settings"`
	Layouts  []config.LayoutReport `json:"layouts"`
	Boards   []config.BoardReport  `json:"boards"`
	Warnings []string              `json:"warnings"`
}

type setting struct {
	Key         string  `json:"key"`
	Value       string  `json:"value"`
	From        string  `json:"from"` // default, file or environment
	Name        *string `json:"name"` // of the file or the environment variable
	Environment string  `json:"environment"`
	Fixed       bool    `json:"fixed"`      // cannot be changed once there are standings
	ChangedBy   *string `json:"changed_by"` // the command that can change it nevertheless
}

func writeJSON(w io.Writer, l *config.Loaded, layouts []config.LayoutReport, boards []config.BoardReport, warnings []string) error {
	r := report{Layouts: append([]config.LayoutReport{}, layouts...), Boards: append([]config.BoardReport{}, boards...), Warnings: append([]string{}, warnings...)}
	for _, s := range l.Settings {
		one := setting{Key: s.Key, Value: s.Shown(), From: s.From.Layer, Environment: s.Variable(), Fixed: s.Fixed}
		if s.From.Name != "" {
			one.Name = &s.From.Name
		}
		if s.ChangedBy != "" {
			one.ChangedBy = &s.ChangedBy
		}
		r.Settings = append(r.Settings, one)
	}
	return cli.WriteJSON(w, r)
}
