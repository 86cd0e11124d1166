package app

// The standings of a configuration, for consumers and readers.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/rules"
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

// archiveReads is the divisor for api.requests: at most this share of the requests may read the archive at a
// time, and as many may wait for that. The rest remains for windows in Redis, even if the archive is slow or
// unavailable.
const archiveReads = 4

// NewReading returns a reader of the configured boards, which uses the connections of r.
func NewReading(r *Reader) (*reading.Reader, error) {
	cfg, client, all := r.Config, r.Client, r.Boards
	c := reading.Config{
		Boards: all, Named: named(cfg), CheckBoard: config.CheckBoard, Has: cfg.Has,
		Topics: cfg.Kafka.Topics, Names: cfg.Fields.Name != "",
		Archive: r.archive.reading(cfg, int(cfg.API.Requests)/archiveReads),
		Renumber: func(ctx context.Context, current ledger.Shards) (*boards.Boards, error) {
			number, err := inventory.ReadNumber(ctx, client, cfg.Redis.Prefix, cfg.Redis.Timeout)
			if err != nil || number.Shards == 0 || number.Shards == current {
				return nil, err
			}
			numbered := *cfg
			numbered.Redis.Shards = int64(number.Shards)
			return NewBoards(&numbered, client, "")
		},
	}
	for _, p := range cfg.Kept() {
		rule, err := cfg.Rule(p)
		if err != nil {
			return nil, err
		}
		c.Periods = append(c.Periods, reading.Period{Rule: rule, Zone: cfg.ZoneOf(p.Name)})
	}
	byDefault, err := rules.Default(cfg.MaxPoints)
	if err != nil {
		return nil, err
	}
	own, err := cfg.Rules()
	if err != nil {
		return nil, err
	}
	c.Rule = func(board string) rules.Rule {
		if r := own.Of(board); r != nil {
			return *r
		}
		return byDefault
	}
	return reading.New(c), nil
}

// named returns the boards that may exist; nil: any.
func named(cfg *config.Config) []string {
	var all []string
	for _, name := range cfg.Boards {
		if name != rules.AnyBoard {
			all = append(all, name)
		}
	}
	return all
}

// Numbered returns the configuration with the number of shards that Redis has. The configuration is unchanged if Redis
// has none.
func Numbered(ctx context.Context, cfg *config.Config, client redis.UniversalClient) (*config.Config, error) {
	number, err := inventory.FindNumber(ctx, client, cfg.Redis.Prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if err != nil || number == 0 {
		return cfg, err
	}
	numbered := *cfg
	numbered.Redis.Shards = int64(number)
	return &numbered, nil
}

// OtherNumber returns the message that Redis has another number of shards than the configuration.
func OtherNumber(cfg *config.Config, shards int64) string {
	return fmt.Sprintf("redis.shards is %d in the configuration but %d in Redis, which takes precedence: set redis.shards to %d, or change the number of shards by consumer reshard --to %d",
		cfg.Redis.Shards, shards, shards, cfg.Redis.Shards)
}

// NewBoards returns the standings under the configured prefix, of all shards. cluster is the Kafka cluster's
// id; readers leave it empty.
func NewBoards(cfg *config.Config, client redis.UniversalClient, cluster string) (*boards.Boards, error) {
	calendar, err := cfg.Calendar()
	if err != nil {
		return nil, err
	}
	kept := map[periods.Period]ranking.Period{}
	for _, p := range cfg.Kept() {
		rule, err := cfg.Rule(p)
		if err != nil {
			return nil, err
		}
		layout, err := cfg.Layout(*p)
		if err != nil {
			return nil, fmt.Errorf("lay out %s scores: %w", p.Name, err)
		}
		kept[p.Name] = ranking.Period{Rule: rule, Layout: layout, Retention: p.Retention}
	}
	ruled, err := rankedBoards(cfg)
	if err != nil {
		return nil, err
	}
	return boards.New(ranking.Config{
		MaxWindows: cfg.MaxWindows,
		Client:     client, Prefix: cfg.Redis.Prefix, Cluster: cluster, Shards: ledger.Shards(cfg.Redis.Shards),
		Periods: kept, Boards: ruled, Lists: cfg.Lists(), Allows: cfg.Allows, Calendar: calendar, Timeout: cfg.Redis.Timeout,
	}), nil
}

// rankedBoards returns the boards of the section for the standings; nil if all of them have the default rule.
func rankedBoards(cfg *config.Config) (map[string]*ranking.Ruled, error) {
	all, err := cfg.Ruled()
	if err != nil || !slices.ContainsFunc(all, func(b config.Board) bool { return b.Rule != nil }) {
		return nil, err
	}
	boards := map[string]*ranking.Ruled{}
	for _, b := range all {
		if boards[b.Name] = nil; b.Rule != nil {
			boards[b.Name] = &ranking.Ruled{Rule: b.Rule, Layouts: b.Layouts}
		}
	}
	return boards, nil
}
