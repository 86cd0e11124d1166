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
	"How far back the log has every record, in the partition where that is the least. A backup of Redis that is older cannot be restored without a gap. "+
		"Not reported while no record was ever deleted. The replica with partition 0 of the first topic reports it.", nil, nil)

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
