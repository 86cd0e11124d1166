// Package produce implements the command produce: it publishes sample events, or the lines of a file.
package produce

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
)

// Command returns the produce command for a program.
func Command(p *cli.Program) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "produce",
		Short: "Publish events from a file, or sample events",
		Long: `Publishes events with acknowledgement by all in-sync replicas: the lines of --file, or
sample events with --count or --rate. Brokers, topic and boards come from the
configuration.

Sample events count like all others: use a topic of its own, unless the boards are for testing
only. --spread distributes their occurred_at over the past; record times are always now, since Kafka
would delete older records. The consumer needs a lateness of at least the spread.

Lines written by "consumer dead-letters export" are published with their key, headers and
time, and with the header standings-mends, which names the source record.
docs/dead-letters.md describes what would count twice.

--check publishes nothing and connects to nothing. It shows, for the consumer's decoder and these
settings, the windows that would count each line, or the reason and message of the dead
letter. The exit code is then 1 if a line would be a dead letter. It cannot check limits that
depend on standings: max_points of a standing and max_windows.

Unacknowledged records are sent again, without duplicates: the producer is idempotent. A run that
is interrupted, or that gets no reply for a minute, reports how many events may have been
written.`,
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
