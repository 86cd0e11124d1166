// Package serve is the command serve.
package serve

import (
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app/serve"
	"github.com/standings/standings/internal/config"
)

// Command is the command serve, for a program.
func Command(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API, without counting anything",
		Long: `Serves boards as JSON over HTTP on api.listen, with a page that shows them in a browser,
and health, readiness and metrics on listen. It reads Redis and nothing else, so that readers
scale apart from those who count: consumer run serves the same beside its work, where api.listen
is set. SIGTERM ends it once the answers under way are through.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return logging.Run(p, func(cfg *config.Config, log *zap.Logger) error { return serve.Run(c.Context(), cfg, log) })
		},
	}
}
