package run

// Windows that take no events any more become final, where that is wanted: one replica of all seals them.

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/internal/sealing"
)

const (
	// sealEvery is how often windows that are due are looked for, with sealPause between two pages of
	// 500 windows.
	sealEvery = time.Minute
	sealPause = 25 * time.Millisecond
	// sealSoon is after how long they are looked for again where the ledger isn't yet where the logs ended,
	// sealsSoon times: it mostly is a moment later.
	sealSoon  = time.Second
	sealsSoon = 5
)

var windowsDue = prometheus.NewDesc("standings_windows_due",
	"Windows that accept no more events and are not final yet. Only with seal. Reported by the replica with partition 0 of the first topic.", nil, nil)

// watchSeals returns when the context ends.
func (p *process) watchSeals(ctx context.Context, cfg *config.Config, all *boards.Boards, c *ingest.Consumer) {
	if !cfg.Seal {
		return
	}
	s := p.sealer(cfg, all)
	seals := turn{topic: cfg.Kafka.Topics[0], every: sealEvery, what: "seal windows that are due", none: p.ops.due.none, look: func(ctx context.Context) error {
		r, err := p.seal(ctx, s)
		for n := 0; n < sealsSoon && errors.Is(r.Passes, ranking.ErrBehind) && retry.Sleep(ctx, sealSoon) == nil; n++ {
			r, err = p.seal(ctx, s)
		}
		return err
	}}
	seals.watch(ctx, c.Snapshot, p.log)
}

func (p *process) seal(ctx context.Context, s *sealing.Sealer) (sealing.Result, error) {
	r, err := s.Seal(ctx)
	p.ops.due.set(gauge(windowsDue, float64(r.Due)))
	if len(r.Final) > 0 {
		signal(p.sealed)
	}
	return r, err
}

func (p *process) sealer(cfg *config.Config, all *boards.Boards) *sealing.Sealer {
	return &sealing.Sealer{
		Boards: all, Kafka: &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: p.transport, Timeout: cfg.Kafka.Timeout},
		Topics: cfg.Kafka.Topics, Pause: sealPause, Now: time.Now, Log: p.log,
		Lateness: app.Lateness(cfg),
	}
}
