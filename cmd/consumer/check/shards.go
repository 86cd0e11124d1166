package check

// This file checks the shards and the cluster that holds them.

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/units"
)

// coverage asks a cluster which slots it does not serve. It does nothing for other kinds of Redis.
func (f *redisFacts) coverage(ctx context.Context, r *app.Reader) {
	cluster, ok := r.Client.(*redis.ClusterClient)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.Config.Redis.Timeout)
	defer cancel()
	f.cluster = true
	f.gaps, f.gapsErr = app.ClusterGaps(ctx, cluster, r.Config)
}

// oneShard is the text for a cluster that has only one shard.
const oneShard = "one shard uses one master: redis.shards spreads members over several, and consumer reshard changes it"

// judgeShards checks the slots of a cluster, and the shards if there are several.
func judgeShards(s *section, f *redisFacts) {
	const check = "slots"
	if f.number != "" {
		s.warn("shards", "", f.number, "")
	}
	switch {
	case !f.cluster:
	case f.gapsErr != nil:
		s.unchecked(check, "", f.gapsErr.Error(), "")
	case len(f.gaps) == 0:
		s.ok(check, "", "the cluster serves all of its slots")
	}
	for _, gap := range f.gaps {
		s.wrong(check, "", gap, "see that every slot has a master, and that each of them runs (redis-cli --cluster check)")
	}
	if len(f.states) <= 1 {
		if f.cluster {
			s.ok("shards", "", oneShard)
		}
		return
	}
	for _, problem := range f.problems {
		s.wrong("shards", "", problem, "see that its master runs, and can be reached from here")
	}
	var empty []string
	for _, r := range f.shards {
		if r.Problem != nil && r.Ledger != nil {
			empty = append(empty, fmt.Sprint(r.Shard))
		}
	}
	switch {
	case len(f.problems) > 0:
	case len(empty) > 0:
		s.warn("shards", "", fmt.Sprintf("of %d shards these are empty, while others are not: %s", len(f.states), units.Names(empty)),
			"if a master was lost, restore its backup, or let them be read again")
	default:
		s.ok("shards", "", fmt.Sprintf("%d, on %s", len(f.states), units.Plural(int64(masters(f.shards)), "server")))
	}
}

// masters returns the number of servers that the shards are on, counting only known ones; at least 1.
func masters(all []shards.Report) int {
	known := map[string]bool{}
	for _, r := range all {
		if r.Master != nil {
			known[*r.Master] = true
		}
	}
	return max(1, len(known))
}
