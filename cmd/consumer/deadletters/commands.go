// Package deadletters is `consumer dead-letters`: it lists, shows and exports what
// couldn't be counted, and reads the lines that an export was mended to.
package deadletters

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest/event"
)

// Command is the command with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "dead-letters",
		Short: "List, show and export the events that couldn't be counted",
		Long: `Reads the dead letters of the configured topics (<topic>.dlq): what couldn't be
counted, as it was, with the reason.

A letter is written once or more. Those of one original, that is of one topic,
partition and offset, are one event here. All that stands in the log when a command
begins is read, once; no offsets are committed and nothing is changed.

docs/operations.md says how letters are mended and published again, and how an event
is kept from counting twice.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLettersListCommand(p), newLettersShowCommand(p), newLettersExportCommand(p))
	return c
}

// letterFlags choose letters.
type letterFlags struct {
	topics       []string
	partition    int
	reasons      []string
	since, until string
}

func (f *letterFlags) declare(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.topics, "topic", nil, "letters of these source `topics` (default: kafka.topics)")
	flags.IntVar(&f.partition, "partition", 0, "letters of this `partition`")
	flags.StringSliceVar(&f.reasons, "reason", nil, "letters with these `reasons`: "+reasonsText())
	flags.StringVar(&f.since, "since", "", "letters written from this `time` on: RFC 3339, or so long ago, such as 2h or 3d")
	flags.StringVar(&f.until, "until", "", "letters written before this `time`")
}

func reasonsText() string {
	var all []string
	for _, r := range event.Reasons() {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}

// given reports whether any of them is on the command line.
func (f *letterFlags) given(c *cobra.Command) bool {
	return slices.ContainsFunc([]string{"topic", "partition", "reason", "since", "until"}, c.Flags().Changed)
}

// complete makes of the flags what is read and what is taken.
func (f *letterFlags) complete(c *cobra.Command, cfg *config.Config) (letterScope, letterFilter, error) {
	scope, filter := letterScope{topics: cfg.Kafka.Topics}, letterFilter{reasons: f.reasons}
	if len(f.topics) > 0 {
		scope.topics, scope.needed = f.topics, true
	}
	for i, topic := range scope.topics {
		if err := config.CheckTopic(topic); err != nil {
			return scope, filter, cli.Usagef("--topic %s %w", topic, err)
		}
		if slices.Contains(scope.topics[:i], topic) {
			return scope, filter, cli.Usagef("--topic names %s twice", topic)
		}
	}
	if c.Flags().Changed("partition") {
		if f.partition < 0 {
			return scope, filter, cli.Usagef("--partition can't be negative")
		}
		scope.partition = &f.partition
	}
	for _, r := range f.reasons {
		if !slices.Contains(event.Reasons(), event.Reason(r)) {
			return scope, filter, cli.Usagef("--reason %s isn't one of %s", r, reasonsText())
		}
	}
	now := time.Now()
	var err error
	if filter.since, err = pointInTime("since", f.since, now); err != nil {
		return scope, filter, err
	}
	if filter.until, err = pointInTime("until", f.until, now); err != nil {
		return scope, filter, err
	}
	if !filter.since.IsZero() && !filter.until.IsZero() && !filter.since.Before(filter.until) {
		return scope, filter, cli.Usagef("--since has to be before --until")
	}
	scope.since = filter.since
	return scope, filter, nil
}

// pointInTime reads a time, or how long ago it was. Nothing is no bound.
func pointInTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := units.ParseDuration(text)
	if err != nil {
		return time.Time{}, cli.Usagef("--%s %s is neither a time such as 2026-11-21T08:15:30Z nor how long ago, such as 2h or 3d", flag, text)
	}
	return now.Add(-ago), nil
}

func newLettersListCommand(p *cli.Program) *cobra.Command {
	f := &letterFlags{}
	var limit int
	var counts, asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Count dead letters by partition and reason, or list them",
		Long: `Without a filter or --limit: how many events of each partition couldn't be counted,
by reason, and in all. EVENTS are originals, LETTERS more where some were written again; both
times are when letters were written. With one: the letters themselves, in the order
of partitions and offsets. --counts counts those that a filter leaves.

A record that isn't a dead letter is listed as such. Control characters and the like
are shown escaped.`,
		Example: `  consumer dead-letters list
  consumer dead-letters list --reason invalid --since 2h
  consumer dead-letters list --topic points --partition 3 --limit 100 --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return cli.Usagef("--limit has to be 1 to %d; export has no limit", maxListed)
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			scope, filter, err := f.complete(c, l.Config)
			if err != nil {
				return err
			}
			if counts || !f.given(c) && !c.Flags().Changed("limit") {
				return countLetters(c.Context(), p, l.Config, scope, filter, asJSON)
			}
			return listLetters(c.Context(), p, l.Config, scope, filter, limit, asJSON)
		},
	}
	f.declare(c)
	c.Flags().IntVar(&limit, "limit", 20, "list at most this many `events`")
	c.Flags().BoolVar(&counts, "counts", false, "count them, filtered or not")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// maxListed is how many letters are held at once, at up to a record's size each.
const maxListed = 10_000

func newLettersShowCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show TOPIC/PARTITION@OFFSET",
		Short: "Show one dead letter in full",
		Long: `Shows the letter of the original at a position, or the one at a position of the
dead-letter topic itself: with its reason, key and headers, and the value indented
where it is JSON, in hexadecimal where it isn't text. Of several letters of one
original the last is shown.`,
		Example: `  consumer dead-letters show points/3@480
  consumer dead-letters show points.dlq/3@17 --json`,
		Args: cli.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := parsePosition(args[0])
			if err != nil {
				return err
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			return showLetter(c.Context(), p, l.Config, at, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, as export does")
	return c
}

func newLettersExportCommand(p *cli.Program) *cobra.Command {
	f := &letterFlags{}
	var out string
	var noTime bool
	c := &cobra.Command{
		Use:   "export",
		Short: "Write dead letters as lines of JSON, to be mended and published again",
		Long: `Writes a line of JSON for every event that couldn't be counted, with its key, headers,
value and time, and under dead_letter why and where it stands. Mend the value in
place and publish the file by "consumer produce --file": dead_letter has to stay.

The copy counts as if it had come right at first: with the original's time. With
--no-time, or where "time" is taken out of a line, it has that of its publishing.

The first letter of an original is written. What isn't a dead letter is left out,
and told.`,
		Example: `  consumer dead-letters export --reason invalid --since 1d --out letters.ndjson
  jq -c '.value.points |= tonumber' letters.ndjson > fixed.ndjson
  consumer produce --file fixed.ndjson`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			scope, filter, err := f.complete(c, l.Config)
			if err != nil {
				return err
			}
			return exportLetters(c.Context(), p, l.Config, scope, filter, out, !noTime)
		},
	}
	f.declare(c)
	c.Flags().StringVar(&out, "out", "", "write to this `file`, which must not exist yet (default: standard output)")
	c.Flags().BoolVar(&noTime, "no-time", false, "leave the original's time out")
	return c
}

// errNoSuchLetter is a letter that isn't there.
var errNoSuchLetter = errors.New("no such dead letter")

// nothingOf says of which topics nothing was ever dead-lettered.
func nothingOf(topics []string) string {
	if len(topics) == 0 {
		return ""
	}
	return fmt.Sprintf("nothing of %s was ever dead-lettered: there is no %s", strings.Join(topics, ", "), dlqNames(topics))
}
