package clients

// Where the snapshots of a configuration are kept.

import (
	"context"
	"fmt"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/archive/snapshot/s3"
	"github.com/standings/standings/internal/archive/store"
)

// Snapshots is a place for snapshots that is open.
type Snapshots struct {
	snapshot.Store

	close func() error
}

// Close closes it: nothing is in flight any more.
func (s *Snapshots) Close() {
	if s != nil && s.close != nil {
		_ = s.close() // there is nothing to do about a connection that ends badly
	}
}

// OpenSnapshots opens the place; nil where none is configured.
func OpenSnapshots(ctx context.Context, cfg *config.Config) (*Snapshots, error) {
	if cfg.Snapshots.URL == "" {
		return nil, nil
	}
	place, err := cfg.Snapshots.Place()
	if err != nil {
		return nil, fmt.Errorf("snapshots.url %w", err)
	}
	switch place.Kind {
	case config.SnapshotsDir:
		return &Snapshots{Store: snapshot.Store{Files: snapshot.Dir{Path: place.Path}}}, nil
	case config.SnapshotsS3:
		c := &cfg.Snapshots.S3
		b, err := s3.Open(ctx, s3.Config{
			Endpoint: c.Endpoint, Region: c.Region, Bucket: place.Bucket, Prefix: place.Prefix, PathStyle: c.PathStyle,
			AccessKey: c.AccessKey, SecretKey: c.SecretKey, CAFile: c.CAFile,
		})
		if err != nil {
			return nil, err
		}
		return &Snapshots{Store: snapshot.Store{Files: b}, close: func() error { b.Close(); return nil }}, nil
	}
	s, err := OpenArchive(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Snapshots{Store: snapshot.Store{Files: store.Snapshots{Store: s}}, close: s.Close}, nil
}
