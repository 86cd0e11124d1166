package run

// Snapshots are taken by one replica of all, the leader by a lease of its own: nothing else that is led
// has to do with it.

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/lease"
	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

// snapshotLease is how long a snapshot may read nothing before another may be begun.
const snapshotLease = 2 * time.Minute

var (
	snapshotLeader = prometheus.NewDesc("standings_snapshot_leader",
		"1 where this replica is the one that takes snapshots, else 0; where `snapshots.url` is set.", nil, nil)
	snapshotKept = prometheus.NewDesc("standings_snapshots_kept",
		"Snapshots that are whole, of this prefix. The leader reports it.", nil, nil)
	snapshotNewest = prometheus.NewDesc("standings_snapshot_newest_timestamp_seconds",
		"When the newest whole snapshot was begun, Unix time; 0 if there is none. The leader reports it.", nil, nil)
	snapshotDuration = prometheus.NewDesc("standings_snapshot_newest_duration_seconds",
		"How long the newest whole snapshot took. The leader reports it.", nil, nil)
	snapshotBytes = prometheus.NewDesc("standings_snapshot_newest_bytes",
		"How large the newest whole snapshot is. The leader reports it.", nil, nil)
	snapshotRows = prometheus.NewDesc("standings_snapshot_newest_rows",
		"Standings in the newest whole snapshot; a few may be counted twice. The leader reports it.", nil, nil)
	snapshotInterval = prometheus.NewDesc("standings_snapshot_interval_seconds",
		"`snapshots.interval`, for alerts. The leader reports it.", nil, nil)
	snapshotFailures = prometheus.NewDesc("standings_snapshot_failures_total",
		"What went wrong with snapshots, by what was being done: list, take or retire. It is tried again.", []string{"doing"}, nil)
)

// snapshotted is what is reported of snapshots.
type snapshotted struct {
	*reported

	mu     sync.Mutex
	failed map[string]int64
	kept   []snapshot.Manifest
	leads  bool
	every  time.Duration
}

func newSnapshotted() *snapshotted {
	return &snapshotted{
		failed:   map[string]int64{"list": 0, "take": 0, "retire": 0},
		reported: newReported(snapshotLeader, snapshotKept, snapshotNewest, snapshotDuration, snapshotBytes, snapshotRows, snapshotInterval, snapshotFailures),
	}
}

// change changes what is known, and reports it.
func (s *snapshotted) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	var all []prometheus.Metric
	for doing, n := range s.failed {
		all = append(all, prometheus.MustNewConstMetric(snapshotFailures, prometheus.CounterValue, float64(n), doing))
	}
	if !s.leads {
		s.set(append(all, gauge(snapshotLeader, 0))...)
		return
	}
	all = append(all, gauge(snapshotLeader, 1), gauge(snapshotInterval, s.every.Seconds()), gauge(snapshotKept, float64(len(s.kept))))
	newest := 0.0
	if len(s.kept) > 0 {
		m := &s.kept[0]
		newest = float64(m.Began.Unix())
		all = append(all, gauge(snapshotDuration, m.Ended.Sub(m.Began).Seconds()), gauge(snapshotBytes, float64(m.Bytes())), gauge(snapshotRows, float64(m.Counts().Rows)))
	}
	s.set(append(all, gauge(snapshotNewest, newest))...)
}

func (s *snapshotted) follows() { s.change(func() { s.leads, s.kept = false, nil }) }

// watchSnapshots returns when the context ends, and nothing is written any more. A place that can't be
// reached holds up nothing else.
func (p *process) watchSnapshots(ctx context.Context, cfg *config.Config, all *boards.Boards, c *ingest.Consumer) {
	if cfg.Snapshots.URL == "" {
		none := func(context.Context) ([]snapshot.Manifest, error) { return nil, nil }
		p.recovers(cfg, all, c, cfg.Kafka.Topics[0], none).watch(ctx, c.Snapshot, p.log)
		return
	}
	is, log := p.ops.snapshotted, p.log.Named("snapshots")
	defer is.none()
	is.follows()
	place := openSnapshots(ctx, cfg, log)
	if place == nil {
		return
	}
	defer place.Close()
	l := lease.Lease{
		Redis: all.Shards()[0].SnapshotLease(), Owner: lease.NewOwner(), Length: leaderLease, Log: log,
		Floor: func(context.Context) (int64, error) { return 0, nil }, // nothing is written by the token
	}
	err := l.Run(ctx, func(ctx context.Context, _ int64) error {
		defer is.follows()
		k := &snapshot.Keeper{
			Store: place.Store, Shards: all.Shards(), Interval: cfg.Snapshots.Interval, Keep: int(cfg.Snapshots.Keep),
			Pace: snapshot.Pace{Pause: cfg.Snapshots.Pause, Lease: snapshotLease}, Log: log,
			Seen: func(kept []snapshot.Manifest) {
				is.change(func() { is.leads, is.kept, is.every = true, kept, cfg.Snapshots.Interval })
			},
			Failed: func(doing string, _ error) { is.change(func() { is.failed[doing]++ }) },
		}
		var beside sync.WaitGroup
		beside.Go(func() { p.recovers(cfg, all, c, "", k.List).watch(ctx, c.Snapshot, log) })
		k.Run(ctx)
		beside.Wait()
		p.ops.recoverable.none()
		return nil
	})
	if err != nil {
		log.Error("no snapshots are taken", zap.Error(err)) // a lease that can't be one: a bug
	}
}

// openSnapshots waits until the place can be opened; nil once the context has ended.
func openSnapshots(ctx context.Context, cfg *config.Config, log *zap.Logger) *clients.Snapshots {
	var said retry.LogLimit
	for pauses := (retry.Policy{First: time.Second, Longest: time.Minute}).Start(); ; {
		s, err := clients.OpenSnapshots(ctx, cfg)
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		if said.Due(time.Minute) {
			log.Warn("the place for snapshots can't be opened: none are taken until it can", zap.Error(err))
		}
		if pauses.Next(ctx) != nil {
			return nil
		}
	}
}
