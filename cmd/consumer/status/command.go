// Package status implements the command status: it shows the progress of every partition, and problems.
package status

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
)

// Command returns the status command for a program.
func Command(p *cli.Program) *cobra.Command {
	var asJSON bool
	var watching cli.Watching
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the progress and problems of every partition",
		Long: `Shows for each partition of the configured topics:

  LOG START, LOG END   the offsets in the log, including records behind an open transaction
  POSITION             what counts, by the ledger in Redis; 120..480@8f3c… is an unfinished
                       sweep of [120, 480): members with a lower hash are included
  COMMITTED            the offset committed to Kafka, for lag monitors only
  LAG                  records from the position to the log's end
  BEHIND               age of the first uncounted record, by this machine's clock and the
                       record's time
  STATE, OWNER         the worker's report, sent every second; stale if older than 3 s

For redis.shards above 1 it shows each shard's master and its lag in records behind the
shard that is furthest ahead; POSITION is that of the shard furthest behind.

Then it shows why partitions are halted or waiting and the remedy, incomplete windows, a
hold, and differences between the configuration and Redis.

The exit code is 1 if a partition is halted or no consumer processes it, or if Kafka or Redis
cannot be reached; it still shows what it can.

With --watch it continues until interrupted (Ctrl-C, exit code 0), also while servers are
unavailable. On a terminal it redraws. Elsewhere it writes again after each change other than the
passing of time: as text after an empty line, or with --json as one document per line.`,
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
