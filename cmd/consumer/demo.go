//go:build !nodemo

package main

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/demo"
)

// withDemo returns the command demo, which includes an embedded Kafka and Redis. Production images are
// built with the tag nodemo, without both.
func withDemo(p *cli.Program) []*cobra.Command { return []*cobra.Command{demo.Command(p)} }
