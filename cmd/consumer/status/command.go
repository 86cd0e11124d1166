// Package status implements the command status: it shows the progress of every partition, and problems.
package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/terminal"
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
				return watch(p, l.Config).Run(c.Context(), p, watching.Every, asJSON)
			}
			s, err := gather(c.Context(), l.Config)
			if err != nil {
				return err
			}
			if asJSON {
				err = cli.WriteJSON(p.Stdout, s)
			} else {
				err = write(p.Stdout, s, p.Colours(p.Stdout))
			}
			if err != nil {
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

// watch repeats the status. It continues during outages, because outages are the reason to watch: an
// unavailable server is a problem in the report, not an error.
func watch(p *cli.Program, cfg *config.Config) *cli.Watch[report] {
	return &cli.Watch[report]{
		Read:     func(ctx context.Context) (*report, error) { return gather(ctx, cfg) },
		Ends:     func(error) bool { return true },
		Document: func(s *report) (document, matters any) { return s, s.whatMatters() },
		Lines:    lines,
		Text: func(s *report) error {
			if err := write(p.Stdout, s, p.Colours(p.Stdout)); err != nil {
				return err
			}
			if away := s.unreachable(); away != nil {
				return terminal.Write(p.Stdout, fmt.Sprintf("\n%v\n", away))
			}
			return nil
		},
	}
}

// whatMatters returns a report without the values that change merely with time.
func (s *report) whatMatters() *report {
	some := *s
	some.At, some.Partitions = "", slices.Clone(s.Partitions)
	for i := range some.Partitions {
		p := &some.Partitions[i]
		p.BehindMS, p.ReportedAt, p.DuplicatesMS = nil, nil, nil
	}
	return &some
}
