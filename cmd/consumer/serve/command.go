// Package serve implements the command serve.
package serve

import (
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app/serve"
	"github.com/standings/standings/internal/config"
)

// Command returns the serve command for a program.
func Command(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API without consuming",
		Long: `Serves the API and its browser page on api.listen, and health, readiness and metrics on
listen. It needs only Redis, so readers scale independently of consumers. "consumer run" also serves the API
if api.listen is set. After SIGTERM it finishes the requests in progress.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return logging.Run(p, func(cfg *config.Config, log *zap.Logger) error { return serve.Run(c.Context(), cfg, log) })
		},
	}
}
