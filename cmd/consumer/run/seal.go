package run

// Windows that take no events any more become final, where that is wanted: one replica of all seals
// them, and every replica learns which ones aren't final any more.
//
//	the clock of every shard is past a window's end and lateness ─▶ due
//	then the logs' ends are looked up                            ─▶ what has to count before
//	each shard seals it in a script that compares its ledger with them
//
// Nothing is decided here that the script doesn't compare, so that two replicas may do it at once,
// and one that is paused in between does no harm.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// sealEvery is how often windows that are due are looked for, with sealPause between two pages of
	// 500 windows, and unsealedEvery how often which of those that are known to be final aren't any more.
	sealEvery     = time.Minute
	sealPause     = 25 * time.Millisecond
	unsealedEvery = 10 * time.Second
	// mostNamed is how many windows a line names.
	mostNamed = 10
)

var windowsDue = prometheus.NewDesc("standings_windows_due",
	"Windows that take no events any more and aren't final yet, as of a minute ago, where `seal` is set. The replica with partition 0 of the first topic reports it.", nil, nil)

// sealer seals windows.
type sealer struct {
	cfg    *config.Config
	all    *boards.Boards
	client *kafka.Client
	r      *reported
	log    *zap.Logger
	sealed chan<- struct{} // gets something once windows are final
}

// watchSeals returns when the context ends.
func (p *process) watchSeals(ctx context.Context, cfg *config.Config, all *boards.Boards, c *ingest.Consumer) {
	learns := turn{every: unsealedEvery, what: "look which windows are final still", none: func() {}, look: func(ctx context.Context) error {
		known := c.Sealed()
		if len(known) == 0 {
			return nil
		}
		open, err := all.NotFinal(ctx, known)
		if err == nil && len(open) > 0 {
			c.Unsealed(open)
			p.log.Info("windows that were final take events again", zap.Strings("windows", firstOf(open)))
		}
		return err
	}}
	if cfg.Seal {
		s := &sealer{cfg: cfg, all: all, client: &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: p.transport, Timeout: cfg.Kafka.Timeout}, r: p.ops.due, log: p.log, sealed: p.sealed}
		seals := turn{topic: cfg.Kafka.Topics[0], every: sealEvery, what: "seal windows that are due", none: p.ops.due.none, look: s.seal}
		sealing := make(chan struct{})
		go func() { defer close(sealing); seals.watch(ctx, c.Snapshot, p.log) }()
		defer func() { <-sealing }()
	}
	learns.watch(ctx, c.Snapshot, p.log)
}

// seal seals what is due.
func (s *sealer) seal(ctx context.Context) error {
	due, err := s.all.Due(ctx, clients.Lateness(s.cfg), sealPause)
	if err != nil {
		return err
	}
	s.r.set(gauge(windowsDue, float64(len(due))))
	if len(due) == 0 {
		return nil
	}
	before, err := s.ends(ctx)
	if err != nil {
		return err
	}
	sealed, err := s.all.Seal(ctx, before, due)
	s.r.set(gauge(windowsDue, float64(len(due)-len(sealed.Final))))
	if n := len(sealed.Final); n > 0 {
		s.log.Info("windows are final", zap.Int("windows", n), zap.Strings("first", sealed.Final[:min(n, mostNamed)]))
		select {
		case s.sealed <- struct{}{}:
		default: // whoever archives is told already
		}
	}
	for _, passes := range []error{ranking.ErrBehind, ranking.ErrHeld, ranking.ErrRebuilding} {
		if errors.Is(err, passes) {
			s.log.Debug("windows can't be sealed yet", zap.Error(err))
			return nil
		}
	}
	return err
}

// ends are where the logs of all topics end, with transactions that are open.
func (s *sealer) ends(ctx context.Context) (map[ledger.Partition]int64, error) {
	numbers, err := kafkaconn.Partitions(ctx, s.client, s.cfg.Kafka.Topics...)
	if err != nil {
		return nil, fmt.Errorf("look where the logs end: %w", err)
	}
	all := map[ledger.Partition]int64{}
	for _, topic := range s.cfg.Kafka.Topics {
		n, ok := numbers[topic]
		if !ok {
			return nil, fmt.Errorf("look where the logs end: there is no topic %s", topic)
		}
		ends, err := kafkaconn.HighWatermarks(ctx, s.client, topic, kafkaconn.UpTo(n)...)
		if err != nil {
			return nil, err
		}
		for number, end := range ends {
			all[ledger.Partition{Topic: topic, Number: number}] = end
		}
	}
	return all, nil
}

// firstOf are the names of the first of some windows.
func firstOf(windows []ledger.Window) []string {
	var all []string
	for _, w := range windows[:min(len(windows), mostNamed)] {
		all = append(all, w.Listing())
	}
	return all
}
