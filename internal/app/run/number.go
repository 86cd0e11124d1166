package run

// The number of shards: as Redis has recorded it, at first by the configuration.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/ranking/reshard"
	"github.com/standings/standings/internal/units"
)

// errRenumbered reports that Redis has recorded another number of shards than this consumer runs with.
var errRenumbered = errors.New("Redis has recorded another number of shards")

// numbered waits for Redis, and returns the configuration with the number of shards that Redis has.
func (p *process) numbered(ctx context.Context, configured *config.Config) (cfg *config.Config, err error) {
	err = await(ctx, p.log, "Redis", ranking.Classify, p.ops.waitsForRedis, func() error {
		var err error
		if cfg, err = app.Numbered(ctx, configured, p.client); err != nil {
			return withGaps(ctx, app.ExplainRedis(ctx, err, configured), p.client, configured)
		}
		return nil
	})
	if cfg.Redis.Shards != configured.Redis.Shards {
		p.log.Warn(app.OtherNumber(configured, cfg.Redis.Shards))
	}
	return cfg, err
}

// claim records the number of shards that this consumer runs with, or returns errRenumbered if another one is recorded.
// A consumer calls it before it begins a shard. After Redis is lost, one consumer may still have the number of a reshard,
// and a restarted one the number of an unchanged configuration; without the claim both would fill shards of their own.
func claim(ctx context.Context, client redis.UniversalClient, cfg *config.Config) error {
	number, err := inventory.ClaimNumber(ctx, client, cfg.Redis.Prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if err == nil && int64(number) != cfg.Redis.Shards {
		err = renumbered(number)
	}
	return err
}

func renumbered(to ledger.Shards) error {
	return fmt.Errorf("%w: %d", errRenumbered, int(to))
}

// numberEvery is how often the process checks for a reshard.
const numberEvery = time.Second

// watchNumber pauses the consumer during a reshard, ends it with errRenumbered once the number of shards has changed, and
// records the number again if Redis has lost it. If Redis does not answer, it changes nothing.
func (p *process) watchNumber(ctx context.Context, cfg *config.Config, pause *ingest.Pause, end context.CancelCauseFunc) {
	tick := time.NewTicker(numberEvery)
	defer tick.Stop()
	for {
		number, err := inventory.ReadNumber(ctx, p.client, cfg.Redis.Prefix, cfg.Redis.Timeout)
		switch {
		case err != nil:
		case number.Shards > 0 && int64(number.Shards) != cfg.Redis.Shards:
			end(renumbered(number.Shards))
			return
		case number.Shards == 0:
			if err := claim(ctx, p.client, cfg); errors.Is(err, errRenumbered) {
				end(err)
				return
			}
		default:
			if why := copying(number.Reshard, ledger.Shards(cfg.Redis.Shards)); why != nil {
				pause.Begin(why)
			} else {
				pause.End()
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// keepEvery is the interval between two checks for an unfinished reshard.
const keepEvery = time.Hour

// keepReshard returns the job that makes the copy of a reshard permanent, if the reshard was killed after its
// switch.
func (p *process) keepReshard(cfg *config.Config, all *boards.Boards) jobs.Job {
	return jobs.Job{Name: "keep a reshard", Every: keepEvery, Run: func(ctx context.Context) (time.Duration, error) {
		number, err := inventory.ReadNumber(ctx, p.client, cfg.Redis.Prefix, cfg.Redis.Timeout)
		if err != nil || number.Shards == 0 || int64(number.Shards) != cfg.Redis.Shards {
			return 0, err
		}
		if err := reshard.Keep(ctx, all.Shards()); err != nil {
			return 0, fmt.Errorf("a reshard has left its copy unfinished; run consumer reshard to the same number again, within a day: %w", err)
		}
		return 0, nil
	}}
}

// copying returns the reason to pause if a reshard copies the boards of this number of shards, else nil. A reshard to the
// same number only removes what an earlier one left.
func copying(by *inventory.Reshard, shards ledger.Shards) error {
	if by == nil || by.From != shards || by.To == shards {
		return nil
	}
	return &health.Waiting{
		Reason: health.WaitsReshard, Err: fmt.Errorf("a reshard by %s copies the boards from %d to %s", by.Owner, int(by.From), units.Plural(int64(by.To), "shard")),
		Remedy: "none is needed: the reshard ends, or its lock runs out",
	}
}
