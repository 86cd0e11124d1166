package run

// How far back the log reaches, for the metrics.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking/boards"
)

const reachEvery = 5 * time.Minute

var logReach = prometheus.NewDesc("standings_log_reach_seconds",
	"How far back every partition has all records. An older Redis backup cannot be restored without a gap. Absent if no record was ever deleted. Reported by the replica with partition 0 of the first topic.", nil, nil)

// watchReach returns when the context ends.
func (p *process) watchReach(ctx context.Context, cfg *config.Config, all *boards.Boards, c *ingest.Consumer) {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: p.transport, Timeout: cfg.Kafka.Timeout}
	reach := turn{topic: cfg.Kafka.Topics[0], every: reachEvery, what: "find how far back the log reaches", none: p.ops.reach.none, look: func(ctx context.Context) error {
		state, err := all.Shards()[0].State(ctx)
		if err != nil {
			return err
		}
		topics, err := app.ReadTopics(ctx, cfg, client)
		if err != nil {
			return err
		}
		r, err := app.Reach(ctx, c, topics, state.Clock)
		if err != nil {
			return err
		}
		p.ops.reach.none()
		if r.Since > 0 {
			p.ops.reach.set(gauge(logReach, max(0, state.Clock().Sub(time.UnixMilli(r.Since)).Seconds())))
		}
		return nil
	}}
	reach.watch(ctx, c.Snapshot, p.log)
}
