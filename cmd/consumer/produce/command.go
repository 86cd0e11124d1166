// Package produce is the command produce: it publishes made-up events, or the lines of a
// file.
package produce

// The command line; produce.go does the work.

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
)

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	f := &flags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "produce",
		Short: "Publish sample events, or the lines of a file",
		Long: `Publishes events, acknowledged by all in-sync replicas: made up by default, or the
lines of a file with --file. Brokers and topic are those of the configuration.

Made-up events go back in time by occurred_at alone (--spread): a record's own
time is always now, as Kafka would delete older ones. A consumer that is to count
them needs a lateness of at least the spread. The same seed and options, with
--now, make the same events.

Made-up events count like all others. So none are made up for a topic whose last
records are others' (or can't be read), unless --among-real-events says so.

Lines that "consumer dead-letters export" wrote are published with their own key,
headers and time, and with the header standings-mends, which names the original.
docs/dead-letters.md has what counts twice.

--check publishes nothing and connects to nothing. By the consumer's own decoder and the settings
here it shows for each line the windows that would count it, or the reason and message of
the dead letter that it would be; then the exit code is 1. What only the standings can say
is left open: max_points of a standing, and max_windows.

What isn't acknowledged is sent again, and written once all the same: the producer is
idempotent. A run that is interrupted, or given up after a minute without an answer,
says how many events may be there or not.`,
		Example: `  consumer produce --rate 500 --boards eu,us
  consumer produce --count 1000000 --members 100000 --spread 35d --bad 0.01
  consumer produce --file events.ndjson
  consumer produce --rate 10 --format cloudevents
  some-program | consumer produce --file -
  consumer produce --file fixed.ndjson --check
  consumer produce --file fixed.ndjson`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if err := f.complete(c, l.Config); err != nil {
				return err
			}
			if f.check {
				return checkLines(c.Context(), p, f, l.Config, asJSON)
			}
			return publish(c.Context(), p, f, l.Config)
		},
	}
	f.declare(c)
	c.Flags().BoolVar(&asJSON, "json", false, "with --check: write JSON")
	return c
}
