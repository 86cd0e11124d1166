// Package status is the command status: how far every partition has come, and what is
// wrong.
package status

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
)

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var asJSON bool
	var watching cli.Watching
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how far every partition has come, and what is wrong",
		Long: `Shows for each partition of the configured topics:

  LOG START, LOG END   the offsets that the log holds, with those that an open transaction
                       holds back
  POSITION             what counts, by the ledger in Redis; 120..480@8f3c… is a sweep
                       of [120, 480) under way: members with a hash below that are in
  COMMITTED            what the group has committed to Kafka, for lag monitors alone
  LAG                  records from the position to the log's end
  BEHIND               how old the first record is that doesn't count yet, by this
                       machine's clock and the record's time
  STATE, OWNER         what the worker reported, which it does every second; stale if the
                       last report is older than 3 s

and, where redis.shards is more than 1, for each shard its master and by how many records its
ledger is behind the shard that is furthest; the position above is that of the one furthest behind;

and then why a partition is halted or waits and what to do, windows that are
incomplete, a hold, and a configuration that isn't the one in Redis.

The exit code is 1 if a partition is halted or no consumer processes it, and if only Kafka
or only Redis can be reached: then it shows what it can.

With --watch it goes on, also while servers are away, until it is interrupted (Ctrl-C,
exit code 0). On a terminal it is drawn in place. Elsewhere it is written again each time
it has changed by more than time: as text after an empty line, or with --json as one
document a line.`,
		Example: `  consumer status
  consumer status --watch
  consumer status --watch --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := watching.Check(c.Flags()); err != nil {
				return err
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if watching.On {
				return watch(c.Context(), p, l.Config, watching.Every, asJSON)
			}
			s, err := gather(c.Context(), l.Config)
			if err != nil {
				return err
			}
			if err := show(p, s, asJSON); err != nil {
				return err
			}
			if err := s.unreachable(); err != nil {
				return err
			}
			return s.counting()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	watching.Flags(c.Flags(), 2*time.Second)
	return c
}

func show(p *cli.Program, s *report, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(p.Stdout, s)
	}
	return write(p.Stdout, s, p.Colours(p.Stdout))
}
