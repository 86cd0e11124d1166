package complete

// What the archive has, beside what Redis has: windows that are past, and boards of which there are no
// others.

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/store"
)

// ArchiveWithin is how long somebody who pressed Tab waits for the archive, after Redis. Tests wait for longer.
var ArchiveWithin = time.Second

// mostArchived is how many windows of the archive are offered: the latest.
const mostArchived = 200

// archived calls do with the archive, if there is one that can be read in time. It is that of every
// prefix, and offered with the configured one alone.
func archived(c *cobra.Command, cfg *config.Config, do func(context.Context, *store.Store)) {
	if f := c.Flags().Lookup("prefix"); cfg.Archive.URL == "" || f != nil && f.Changed {
		return
	}
	if path, ok := strings.CutPrefix(cfg.Archive.URL, "sqlite:"); ok {
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); err != nil {
			return // to open it would make it
		}
	}
	ctx, cancel := context.WithTimeout(c.Context(), ArchiveWithin)
	defer cancel()
	s, err := clients.OpenArchive(ctx, cfg)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }() // it was only read
	if s.Check(ctx) == nil {
		do(ctx, s)
	}
}

// addWindows adds the names of those that the archive has, of a board and a period where those are given.
func addWindows(c *cobra.Command, cfg *config.Config, board, period string, words map[string]bool) {
	archived(c, cfg, func(ctx context.Context, s *store.Store) {
		all, err := s.Windows(ctx, store.Filter{Board: board, Period: period, Newest: true}, store.Place{}, mostArchived)
		if err != nil {
			return
		}
		for i := range all {
			words[all[i].Name] = true
		}
	})
}

// addBoards adds the names of those of which the archive has windows.
func addBoards(c *cobra.Command, cfg *config.Config, words map[string]bool) {
	archived(c, cfg, func(ctx context.Context, s *store.Store) {
		all, err := s.Kept(ctx)
		if err != nil {
			return
		}
		for _, k := range all {
			words[k.Board] = true
		}
	})
}
