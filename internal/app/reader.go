package app

// The standings of a configuration, for those who read them.

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

	archive *Archive // of windows that Redis doesn't have; nil: there is none
}

// OpenReader dials Redis, and asks it how many shards there are. Where that isn't answered, nor
// is what comes after it. It is closed by Close.
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

// Renumber asks again how many shards there are: a reshard may have switched over since.
func (r *Reader) Renumber(ctx context.Context) error {
	cfg, _ := Numbered(ctx, r.Config, r.Client)
	all, err := NewBoards(cfg, r.Client, "")
	if err != nil {
		return err
	}
	r.Config, r.Boards = cfg, all
	return nil
}

// Archive is the archive of windows that Redis doesn't have; nil where none is configured.
func (r *Reader) Archive() *Archive { return r.archive }

// Close closes the connections: nothing is in flight any more.
func (r *Reader) Close() {
	r.archive.Close()
	_ = r.Client.Close()
}

// CheckSchema is a *ranking.SchemaError where the configuration differs from what the
// scores of a shard were written with. Without Kafka, whatever cluster there was is right.
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
			return other // it is the same in all that have one, and were read
		}
		shard, of := s.Shard()
		return &ranking.ShardError{Shard: shard, Of: of, Addr: s.Addr(), Err: other}
	}
	return nil
}
