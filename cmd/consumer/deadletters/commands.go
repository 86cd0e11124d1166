// Package deadletters implements `consumer dead-letters`: it lists, shows and exports the events that could
// not be counted. ParseLine reads the lines of an edited export.
package deadletters

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/units"
)

// Command returns the dead-letters command with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "dead-letters",
		Short: "List, show and export dead letters",
		Long: `Reads the dead-letter topics (<topic>.dlq) of the configured topics: the events that could not be
counted, unchanged, with the reason.

A source record, that is a topic, partition and offset, can have several dead letters; they are one
event here. A command reads what the log contains at its start. It commits no
offsets and changes nothing.

docs/dead-letters.md describes how to fix and publish events, and how to avoid counting them
twice.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listCommand(p), showCommand(p), exportCommand(p))
	return c
}

// flags holds the flags that select dead letters.
type flags struct {
	topics       []string
	partition    int
	reasons      []string
	since, until string
	open         bool
}

func (f *flags) declare(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.topics, "topic", nil, "dead letters of these source `topics` (default: kafka.topics)")
	flags.IntVar(&f.partition, "partition", 0, "dead letters of this `partition`")
	flags.StringSliceVar(&f.reasons, "reason", nil, "dead letters with these `reasons`: "+reasonsText())
	flags.StringVar(&f.since, "since", "", "dead letters written since this `time`: RFC 3339, or a duration ago such as 2h or 3d")
	flags.StringVar(&f.until, "until", "", "dead letters written before this `time`")
	flags.BoolVar(&f.open, "open", false, "dead letters without a fixed copy; also reads the source topics")
}

func reasonsText() string {
	var all []string
	for _, r := range event.Reasons() {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}

// given reports whether any of these flags is on the command line.
func (f *flags) given(c *cobra.Command) bool {
	return slices.ContainsFunc([]string{"topic", "partition", "reason", "since", "until", "open"}, c.Flags().Changed)
}

// complete converts the flags into the topics to read and the filter.
func (f *flags) complete(c *cobra.Command, cfg *config.Config) (scope, error) {
	s := scope{topics: cfg.Kafka.Topics, reasons: f.reasons, open: f.open}
	if len(f.topics) > 0 {
		s.topics, s.needed = f.topics, true
	}
	for i, topic := range s.topics {
		if err := config.CheckTopic(topic); err != nil {
			return s, cli.Usagef("--topic %s %w", topic, err)
		}
		if slices.Contains(s.topics[:i], topic) {
			return s, cli.Usagef("--topic contains %s twice", topic)
		}
	}
	if c.Flags().Changed("partition") {
		s.partition = &f.partition
	}
	if f.partition < 0 {
		return s, cli.Usagef("--partition must not be negative")
	}
	for _, r := range f.reasons {
		if !slices.Contains(event.Reasons(), event.Reason(r)) {
			return s, cli.Usagef("--reason %s must be one of %s", r, reasonsText())
		}
	}
	now := time.Now()
	var err error
	if s.since, err = pointInTime("since", f.since, now); err != nil {
		return s, err
	}
	if s.until, err = pointInTime("until", f.until, now); err != nil {
		return s, err
	}
	if !s.since.IsZero() && !s.until.IsZero() && !s.since.Before(s.until) {
		return s, cli.Usagef("--since must be before --until")
	}
	return s, nil
}

// pointInTime parses a time (RFC 3339), or a duration that it subtracts from now. An empty text returns the
// zero time.
func pointInTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := units.ParseDuration(text)
	if err != nil {
		return time.Time{}, cli.Usagef("--%s %s must be a time such as 2026-11-21T08:15:30Z, or a duration ago such as 2h or 3d", flag, text)
	}
	return now.Add(-ago), nil
}

func listCommand(p *cli.Program) *cobra.Command {
	f := &flags{}
	var limit int
	var counted, asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Count or list dead letters",
		Long: `Without a filter or --limit: the number of events per partition and reason, and in all. EVENTS
are source records; LETTERS is larger if some were written again. The times are those of the dead
letters. With a filter: the dead letters, by partition and offset; with --counts only their
numbers.

--open selects those without a fixed copy, which has the header standings-mends. It reads
the source topics from their first offset.

Records that are not dead letters are listed as such. Control characters are escaped.`,
		Example: `  consumer dead-letters list
  consumer dead-letters list --reason invalid --since 2h
  consumer dead-letters list --open
  consumer dead-letters list --topic points --partition 3 --limit 100 --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return cli.Usagef("--limit must be 1 to %d; export has no limit", maxListed)
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			s, err := f.complete(c, l.Config)
			if err != nil {
				return err
			}
			var of listing = &firstOnes{limit: limit, seen: originals{}, held: map[Position]*listed{}}
			if counted || !f.given(c) && !c.Flags().Changed("limit") {
				of = &counts{seen: originals{}}
			}
			return list(c.Context(), p, l.Config, s, of, asJSON)
		},
	}
	f.declare(c)
	c.Flags().IntVar(&limit, "limit", 20, "maximum number of `events`")
	c.Flags().BoolVar(&counted, "counts", false, "count dead letters instead of listing them")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// maxListed is the maximum of --limit. list holds that many dead letters in memory, each as large as a
// record.
const maxListed = 10_000

func showCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show TOPIC/PARTITION@OFFSET",
		Short: "Show one dead letter",
		Long: `Shows the dead letter of the source record at this position, or the one at this position of the
dead-letter topic: reason, key, headers and value, as indented JSON, text or
hexadecimal. If a source record has several, the last one is shown. A dead letter
for a whole record batch (too_large) is found by each of its offsets.`,
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
			return show(c.Context(), p, l.Config, at, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, as export does")
	return c
}

func exportCommand(p *cli.Program) *cobra.Command {
	f := &flags{}
	var out string
	var noTime bool
	c := &cobra.Command{
		Use:   "export",
		Short: "Export dead letters as JSON lines",
		Long: `Writes one line of JSON per event that could not be counted, with key, headers, value and time;
dead_letter has the reason and the source record. Fix the value in place, keep dead_letter,
and publish the file with "consumer produce --file".

The copy has the time of the source record, so it counts as that would have. With --no-time, or
if "time" is removed from a line, it has the time at which it is published.

If a source record has several dead letters, the first is written. Other records are skipped
and reported, and so are dead letters for whole record batches (too_large), which have no value.`,
		Example: `  consumer dead-letters export --open --reason invalid --out letters.ndjson
  jq -c '.value.points |= tonumber' letters.ndjson > fixed.ndjson
  consumer produce --file fixed.ndjson`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			s, err := f.complete(c, l.Config)
			if err != nil {
				return err
			}
			return export(c.Context(), p, l.Config, s, out, !noTime)
		},
	}
	f.declare(c)
	c.Flags().StringVar(&out, "out", "", "write to this `file`, which must not exist (default: standard output)")
	c.Flags().BoolVar(&noTime, "no-time", false, "omit the time of the source record")
	return c
}
