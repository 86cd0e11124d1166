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
	c := &cobra.Command{
		Use:   "produce",
		Short: "Publish the lines of a file, or sample events",
		Long: `Publishes events, acknowledged by all in-sync replicas: the lines of a file with
--file, or made-up ones with --count or --rate. The brokers are those of the
configuration, and so are the topic and the boards.

Made-up events count like all others, on the boards of those who play: use a topic of
its own, unless the boards are only for trying. They go back in time by occurred_at
alone (--spread): a record's own time is always now, as Kafka would delete older ones.
A consumer that is to count them needs a lateness of at least the spread.

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
		Example: `  consumer produce --file events.ndjson
  some-program | consumer produce --file -
  consumer produce --file fixed.ndjson --check
  consumer produce --rate 500
  consumer produce --count 1000000 --members 100000 --spread 35d`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if err := f.complete(l.Config); err != nil {
				return err
			}
			if f.check {
				return checkLines(c.Context(), p, f, l.Config)
			}
			return publish(c.Context(), p, f, l.Config)
		},
	}
	f.declare(c)
	return c
}
