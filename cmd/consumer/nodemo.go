//go:build nodemo

package main

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
)

// withDemo returns no command: this program is built without the demo.
func withDemo(*cli.Program) []*cobra.Command { return nil }
