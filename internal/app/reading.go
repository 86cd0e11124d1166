package app

// The configured boards, for commands and ports that show them.

import (
	"context"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/rules"
)

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
