package app

// The standings of a configuration, for readers.

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Reader reads the standings of a configuration.
type Reader struct {
	Config   *config.Config
	Client   redis.UniversalClient
	Boards   *boards.Boards
	Calendar periods.Calendar

	archive *Archive // for windows that Redis no longer has; nil: no archive
}

// OpenReader connects to Redis and reads the number of shards. If that read fails, it uses the configured
// number, and later calls report the error. The caller must call Close.
func OpenReader(ctx context.Context, cfg *config.Config) (*Reader, error) {
	client, err := NewReadingRedis(cfg)
	if err != nil {
		return nil, err
	}
	r := &Reader{Client: client, archive: newArchive(cfg)}
	if r.Calendar, err = cfg.Calendar(); err == nil {
		r.Config, _ = Numbered(ctx, cfg, client)
		r.Boards, err = NewBoards(r.Config, client, "")
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Renumber reads the number of shards again, because a reshard may have changed it.
func (r *Reader) Renumber(ctx context.Context) error {
	cfg, _ := Numbered(ctx, r.Config, r.Client)
	all, err := NewBoards(cfg, r.Client, "")
	if err != nil {
		return err
	}
	r.Config, r.Boards = cfg, all
	return nil
}

// Archive returns the archive for windows that Redis no longer has; nil if none is configured.
func (r *Reader) Archive() *Archive { return r.archive }

// Close closes the connections. No call may be in flight.
func (r *Reader) Close() {
	r.archive.Close()
	_ = r.Client.Close()
}

// CheckSchema returns a *ranking.SchemaError if the configuration differs from the schema of a shard. If
// cluster is empty, it ignores the Kafka cluster.
func (r *Reader) CheckSchema(cluster string, states []ledger.State) error {
	b, err := NewBoards(r.Config, r.Client, cluster)
	if err != nil {
		return err
	}
	for i, s := range b.Shards() {
		err := s.CheckSchema(states[i].Schema)
		other, ok := errors.AsType[*ranking.SchemaError](err)
		if !ok {
			continue
		}
		if cluster == "" {
			if other, ok = errors.AsType[*ranking.SchemaError](whateverCluster(other)); ok && other.Wanted == other.Found {
				continue
			}
		}
		if !slices.ContainsFunc(states, func(st ledger.State) bool { return st.Schema != "" && st.Schema != states[i].Schema }) {
			return other // it is the same on all shards that have a schema and were read
		}
		shard, of := s.Shard()
		return &ranking.ShardError{Shard: shard, Of: of, Addr: s.Addr(), Err: other}
	}
	return nil
}
