package clients

// The archive of a configuration.

import (
	"context"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/store"
)

// OpenArchive opens the archive; nil where none is configured. Its schema is the caller's to check,
// or to migrate.
func OpenArchive(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	if cfg.Archive.URL == "" {
		return nil, nil
	}
	return store.Open(ctx, cfg.Archive.URL)
}
