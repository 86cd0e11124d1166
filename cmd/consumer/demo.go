//go:build !nodemo

package main

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/demo"
)

// withDemo is the command demo, which brings an embedded Kafka and Redis: an image for production is
// built with the tag nodemo, and has neither.
func withDemo(p *cli.Program) []*cobra.Command { return []*cobra.Command{demo.Command(p)} }
