// Package version implements the command version.
package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app/build"
)

// report is the JSON; docs/json.md describes its fields.
type report struct {
	Version   string `json:"version"`
	Revision  string `json:"revision"`
	GoVersion string `json:"go_version"`
}

// Command returns the version command for a program.
func Command(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Long:  `Shows the version, the commit and the Go version of this build, or "unknown".`,
		Args:  cli.ExactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			r := report{GoVersion: runtime.Version()}
			r.Version, r.Revision = build.Version()
			if asJSON {
				return cli.WriteJSON(p.Stdout, r)
			}
			_, err := fmt.Fprintf(p.Stdout, "version   %s\nrevision  %s\ngo        %s\n", r.Version, r.Revision, r.GoVersion)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
