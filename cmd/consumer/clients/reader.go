package clients

// The standings of a configuration, for those who read them.

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Reader reads the standings of a configuration.
type Reader struct {
	Config   *config.Config
	Client   redis.UniversalClient
	Store    *ranking.Store
	Calendar periods.Calendar
}

// OpenReader dials Redis. It is closed by Close.
func OpenReader(cfg *config.Config) (*Reader, error) {
	calendar, err := cfg.Calendar()
	if err != nil {
		return nil, err
	}
	client, err := NewRedis(cfg, nil)
	if err != nil {
		return nil, err
	}
	store, err := NewStore(cfg, client, "")
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Reader{Config: cfg, Client: client, Store: store, Calendar: calendar}, nil
}

// Close closes the connections: nothing is in flight any more.
func (r *Reader) Close() { _ = r.Client.Close() }

// CheckSchema is a *ranking.SchemaError where the configuration differs from what the
// scores were written with. Without Kafka, whatever cluster there was is right.
func (r *Reader) CheckSchema(cluster, found string) error {
	store, err := NewStore(r.Config, r.Client, cluster)
	if err == nil {
		err = store.CheckSchema(found)
	}
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok && cluster == "" {
		err = WhateverCluster(other)
		if other, ok = errors.AsType[*ranking.SchemaError](err); ok && other.Wanted == other.Found {
			err = nil
		}
	}
	return err
}
