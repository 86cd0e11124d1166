package main

// consumer config: every setting, its value and where it came from, and what
// the layouts come to.

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
)

func newConfigCommand(p *cli.Program) *cobra.Command {
	var asJSON, asMarkdown bool
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration, and where each value came from",
		Long: `Shows every setting, its value, and whether that is the default or came from the
file or the environment; then what the score layouts come to for each enabled
period. All that is wrong is listed, and the exit code is 2.`,
		Args: cli.ExactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			if asMarkdown {
				return config.WriteMarkdown(p.Stdout)
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			layouts, warnings, err := l.Config.Layouts()
			if err != nil {
				return err
			}
			if asJSON {
				return writeConfigJSON(p.Stdout, l, layouts, warnings)
			}
			return writeConfigTable(p.Stdout, l, layouts, warnings)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&asMarkdown, "markdown", false, "write all settings as a document")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

func writeConfigTable(w io.Writer, l *config.Loaded, layouts []config.LayoutReport, warnings []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tFROM")
	for _, s := range l.Settings {
		shown := s.Shown()
		if shown == "" {
			shown = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Key, shown, s.From)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\nCan't be changed later under a prefix: %s\n", strings.Join(fixed(l), ", ")); err != nil {
		return err
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "PERIOD\tLAYOUT\tK\tTICK\tPOINTS\tREACHED_AT\tRETENTION")
	for _, r := range layouts {
		tick := units.FormatDuration(time.Duration(r.TickMS) * time.Millisecond)
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d to %d\tto %s\t%s\n", r.Period, r.Layout, r.K, tick, r.MinPoints, r.MaxPoints, tick, r.Retention)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, warning := range warnings {
		if _, err := fmt.Fprintf(w, "\nwarning: %s\n", warning); err != nil {
			return err
		}
	}
	return nil
}

// fixed are the settings that can't be changed once there are standings; those of all
// periods together as periods.<name>.enabled.
func fixed(l *config.Loaded) []string {
	var keys []string
	for _, s := range l.Settings {
		if !s.Fixed {
			continue
		}
		key := s.Key
		if parts := strings.Split(key, "."); parts[0] == "periods" {
			parts[1] = "<name>"
			key = strings.Join(parts, ".")
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// configReport is all of config as JSON; docs/json.md has its fields.
type configReport struct {
	Settings []settingReport       `json:"settings"`
	Layouts  []config.LayoutReport `json:"layouts"`
	Warnings []string              `json:"warnings"`
}

type settingReport struct {
	Key         string  `json:"key"`
	Value       string  `json:"value"`
	From        string  `json:"from"` // default, file or environment
	Name        *string `json:"name"` // of the file or the variable
	Environment string  `json:"environment"`
	Fixed       bool    `json:"fixed"` // can't be changed once there are standings
}

func writeConfigJSON(w io.Writer, l *config.Loaded, layouts []config.LayoutReport, warnings []string) error {
	report := configReport{Layouts: append([]config.LayoutReport{}, layouts...), Warnings: append([]string{}, warnings...)}
	for _, s := range l.Settings {
		one := settingReport{Key: s.Key, Value: s.Shown(), From: s.From.Layer, Environment: s.Variable(), Fixed: s.Fixed}
		if s.From.Name != "" {
			one.Name = &s.From.Name
		}
		report.Settings = append(report.Settings, one)
	}
	return cli.WriteJSON(w, report)
}
