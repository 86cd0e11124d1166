package run

// Windows that take no events any more become final, where that is wanted: one replica of all seals
// them, and every replica learns which ones aren't final any more.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/sealing"
)

const (
	// sealEvery is how often windows that are due are looked for, with sealPause between two pages of
	// 500 windows, and unsealedEvery how often which of those that are known to be final aren't any more.
	sealEvery     = time.Minute
	sealPause     = 25 * time.Millisecond
	unsealedEvery = 10 * time.Second
)

var windowsDue = prometheus.NewDesc("standings_windows_due",
	"Windows that take no events any more and aren't final yet, as of a minute ago, where `seal` is set. The replica with partition 0 of the first topic reports it.", nil, nil)

// watchSeals returns when the context ends.
func (p *process) watchSeals(ctx context.Context, cfg *config.Config, all *boards.Boards, c *ingest.Consumer) {
	learns := turn{every: unsealedEvery, what: "look which windows are final still", none: func() {}, look: func(ctx context.Context) error {
		return sealing.Reopened(ctx, all, c, p.log)
	}}
	if cfg.Seal {
		s := p.sealer(cfg, all)
		seals := turn{topic: cfg.Kafka.Topics[0], every: sealEvery, what: "seal windows that are due", none: p.ops.due.none, look: func(ctx context.Context) error {
			r, err := s.Seal(ctx)
			p.ops.due.set(gauge(windowsDue, float64(r.Due)))
			if len(r.Final) > 0 {
				select {
				case p.sealed <- struct{}{}:
				default: // whoever archives is told already
				}
			}
			return err
		}}
		done := make(chan struct{})
		go func() { defer close(done); seals.watch(ctx, c.Snapshot, p.log) }()
		defer func() { <-done }()
	}
	learns.watch(ctx, c.Snapshot, p.log)
}

func (p *process) sealer(cfg *config.Config, all *boards.Boards) *sealing.Sealer {
	return &sealing.Sealer{
		Boards: all, Kafka: &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: p.transport, Timeout: cfg.Kafka.Timeout},
		Topics: cfg.Kafka.Topics, Pause: sealPause, Now: time.Now, Log: p.log,
		Lateness: clients.Lateness(cfg),
	}
}
