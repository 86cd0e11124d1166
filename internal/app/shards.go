package app

// Errors of several shards at once: an unavailable master is one error, whatever the number of its shards.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/units"
)

// ExplainShards returns what the errors of shards mean, like ExplainRedis: one line for all shards of a server
// that have the same error. A nil error means that the shard has none.
func ExplainShards(ctx context.Context, errs []error, cfg *config.Config) []string {
	type kind struct{ addr, text string }
	var order []kind
	shards := map[kind][]string{}
	of := len(errs)
	for i, err := range errs {
		if err == nil {
			continue
		}
		k := kind{text: ""}
		line := ExplainRedis(ctx, err, cfg)
		if shard, ok := errors.AsType[*ranking.ShardError](line); ok {
			k.addr, k.text = shard.Addr, strings.Replace(line.Error(), shard.Name()+": ", "", 1)
		} else {
			k.text = line.Error()
		}
		if len(shards[k]) == 0 {
			order = append(order, k)
		}
		shards[k] = append(shards[k], fmt.Sprint(i))
	}
	var lines []string
	for _, k := range order {
		lines = append(lines, shardsName(shards[k], of, k.addr)+k.text)
	}
	return lines
}

// shardsName returns the prefix for an error of some shards; empty if there is only one shard.
func shardsName(some []string, of int, addr string) string {
	if of == 1 {
		return ""
	}
	name := "shard " + some[0]
	if len(some) > 1 {
		name = "shards " + units.Names(some)
	}
	name += fmt.Sprintf(" of %d", of)
	if addr != "" {
		name += " on " + addr
	}
	return name + ": "
}

// ClusterGaps returns what a cluster does not serve, one line each; none if it serves all slots.
func ClusterGaps(ctx context.Context, client *redis.ClusterClient, cfg *config.Config) ([]string, error) {
	all, err := redisconn.Cover(ctx, client)
	if err != nil {
		return nil, ExplainRedis(ctx, err, cfg)
	}
	return all.Gaps(), nil
}
