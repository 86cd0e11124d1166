// Package run implements the command run.
package run

import (
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app/run"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/counts"
)

// Command returns the run command for a program.
func Command(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Consume events and maintain the boards",
		Long: `Joins the consumer group and maintains the boards in Redis until SIGTERM or SIGINT. It then
finishes the pieces in flight, commits, leaves the group and exits with 0. Replicas share the
partitions.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return logging.Run(p, func(cfg *config.Config, log *zap.Logger) error {
				return run.Consume(c.Context(), cfg, log, new(counts.Stats), nil)
			})
		},
	}
}
