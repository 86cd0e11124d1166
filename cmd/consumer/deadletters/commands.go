// Package deadletters is `consumer dead-letters`: it lists, shows and exports what
// couldn't be counted, and reads the lines that an export was edited to.
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

// Command is the command with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "dead-letters",
		Short: "List, show and export the events that couldn't be counted",
		Long: `Reads the dead letters of the configured topics (<topic>.dlq): what couldn't be
counted, as it was, with the reason.

A dead letter is written once or more. Those of one original, that is of one topic,
partition and offset, are one event here. A command reads what is in the log when it
begins, once; it commits no offsets and changes nothing.

docs/dead-letters.md has how to fix and publish them, and how to keep an event from
counting twice.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listCommand(p), showCommand(p), exportCommand(p))
	return c
}

// flags choose dead letters.
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
	flags.StringVar(&f.since, "since", "", "dead letters written from this `time` on: RFC 3339, or so long ago, such as 2h or 3d")
	flags.StringVar(&f.until, "until", "", "dead letters written before this `time`")
	flags.BoolVar(&f.open, "open", false, "dead letters whose original has no fixed copy yet; reads the topics themselves, too")
}

func reasonsText() string {
	var all []string
	for _, r := range event.Reasons() {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}

// given reports whether any of them is on the command line.
func (f *flags) given(c *cobra.Command) bool {
	return slices.ContainsFunc([]string{"topic", "partition", "reason", "since", "until", "open"}, c.Flags().Changed)
}

// complete makes of the flags what is read and what is taken.
func (f *flags) complete(c *cobra.Command, cfg *config.Config) (scope, error) {
	s := scope{topics: cfg.Kafka.Topics, filter: filter{reasons: f.reasons, open: f.open}}
	if len(f.topics) > 0 {
		s.topics, s.needed = f.topics, true
	}
	for i, topic := range s.topics {
		if err := config.CheckTopic(topic); err != nil {
			return s, cli.Usagef("--topic %s %w", topic, err)
		}
		if slices.Contains(s.topics[:i], topic) {
			return s, cli.Usagef("--topic names %s twice", topic)
		}
	}
	if c.Flags().Changed("partition") {
		if f.partition < 0 {
			return s, cli.Usagef("--partition can't be negative")
		}
		s.partition = &f.partition
	}
	for _, r := range f.reasons {
		if !slices.Contains(event.Reasons(), event.Reason(r)) {
			return s, cli.Usagef("--reason %s isn't one of %s", r, reasonsText())
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
		return s, cli.Usagef("--since has to be before --until")
	}
	return s, nil
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

func listCommand(p *cli.Program) *cobra.Command {
	f := &flags{}
	var limit int
	var counted, asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Count dead letters by partition and reason, or list them",
		Long: `Without a filter or --limit: how many events of each partition couldn't be counted,
by reason, and in all. EVENTS are originals, LETTERS more if some were written again; both
times are when dead letters were written. With one: the dead letters themselves, in the
order of partitions and offsets. --counts counts those that a filter leaves.

--open leaves those whose original has no fixed copy, as of when the command begins. It
reads the topics themselves, from their first offset on: a copy has the header
standings-mends.

A record that isn't a dead letter is listed as such. Control characters and the like
are shown escaped.`,
		Example: `  consumer dead-letters list
  consumer dead-letters list --reason invalid --since 2h
  consumer dead-letters list --open
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
	c.Flags().IntVar(&limit, "limit", 20, "list at most this many `events`")
	c.Flags().BoolVar(&counted, "counts", false, "count them, filtered or not")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// maxListed is how many dead letters are held at once, at up to a record's size each.
const maxListed = 10_000

func showCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show TOPIC/PARTITION@OFFSET",
		Short: "Show one dead letter in full",
		Long: `Shows the dead letter of the original at a position, or the one at a position of the
dead-letter topic itself: with its reason, key and headers, and the value indented
if it is JSON, in hexadecimal if it isn't text. Of several dead letters of one
original the last is shown. A dead letter that stands for a whole record batch
(too_large) is found by each of its offsets.`,
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
		Short: "Write dead letters as lines of JSON, to be fixed and published again",
		Long: `Writes a line of JSON for every event that couldn't be counted, with its key, headers,
value and time, and under dead_letter why it is one and where the original is. Fix the
value in place and publish the file by "consumer produce --file"; keep dead_letter.

The copy has the original's time, so it counts as the original would have. With
--no-time, or if "time" is taken out of a line, it has that of its publishing.

The first dead letter of an original is written. What isn't a dead letter is left out,
and so is a dead letter that stands for a whole record batch (too_large), which has no
value to fix; both are reported.`,
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
	c.Flags().StringVar(&out, "out", "", "write to this `file`, which must not exist yet (default: standard output)")
	c.Flags().BoolVar(&noTime, "no-time", false, "leave the original's time out")
	return c
}
