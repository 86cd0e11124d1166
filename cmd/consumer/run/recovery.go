package run

// What would bring the standings back if Redis were lost now, looked at from time to time: by the replica
// that takes snapshots, or, without snapshots, by the one with the first partition.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/recovery"
)

// recoveryEvery is how often it is looked at.
const recoveryEvery = 5 * time.Minute

var (
	recoveryBy = prometheus.NewDesc("standings_recovery",
		"1 for what would bring the standings back if Redis were lost now: the log alone, a snapshot and the log, or nothing. One replica reports it.", []string{"by"}, nil)
	recoverySince = prometheus.NewDesc("standings_recovery_nothing_since_timestamp_seconds",
		"Since when nothing would, Unix time, as far as replicas have looked, and by Redis's clock; 0 while something would. One replica reports it.", nil, nil)
)

// recoverable is what is reported of it.
type recoverable struct {
	*reported

	last recovery.By
}

func newRecoverable() *recoverable {
	return &recoverable{reported: newReported(recoveryBy, recoverySince)}
}

// is reports a verdict, and since when it is so, and logs one that is news.
func (r *recoverable) is(v recovery.Verdict, since time.Time, log *zap.Logger) {
	news := v.By != r.last
	r.last = v.By
	nothing := 0.0
	if v.By == recovery.Nothing {
		nothing = float64(since.Unix())
	}
	all := []prometheus.Metric{gauge(recoverySince, nothing)}
	for _, by := range recovery.All {
		n := 0.0
		if by == v.By {
			n = 1
		}
		all = append(all, gauge(recoveryBy, n, string(by)))
	}
	r.set(all...)
	switch {
	case !news:
	case v.By == recovery.Nothing:
		log.Warn("if Redis were lost now, points would be lost", zap.Time("since", since), zap.String("log", v.WhyNotLog), zap.String("snapshot", v.WhyNotSnapshot))
	case v.By == recovery.Snapshot:
		log.Info("if Redis were lost now, a snapshot and the log would bring the standings back", zap.String("name", v.Name))
	default:
		log.Info("if Redis were lost now, the log would bring the standings back")
	}
}

// recovers looks at it from time to time. Of is the topic by which it is this replica's turn; list lists
// the snapshots.
func (p *process) recovers(cfg *config.Config, all *boards.Boards, c *ingest.Consumer, of string, list func(context.Context) ([]snapshot.Manifest, error)) turn {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: p.transport, Timeout: cfg.Kafka.Timeout}
	return turn{topic: of, every: recoveryEvery, what: "look what would bring the standings back", none: p.ops.recoverable.none, look: func(ctx context.Context) error {
		kept, err := list(ctx)
		if err != nil {
			return err
		}
		states, errs := all.States(ctx)
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		topics, err := clients.ReadTopics(ctx, cfg, client)
		if err != nil {
			return err
		}
		v, err := clients.Recovery(ctx, cfg, c, topics, all, states[0].Clock, kept)
		if err != nil {
			return err
		}
		since, err := all.Shards()[0].NoteRecovery(ctx, string(v.By))
		if err == nil {
			p.ops.recoverable.is(v, since, p.log)
		}
		return err
	}}
}
