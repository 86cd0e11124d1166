package run

// Why the process isn't ready: what it waits for at the start and at the end, what
// doesn't answer, and the partitions that don't go on.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/units"
)

// patience is how long a partition may wait, and the process be outside of its group
// or without Redis, before it isn't ready: rebalances and single failures pass.
const patience = 5 * time.Second

// Reasons, beside those of halts and waiting, which is a partition's. The test of operations.md
// reads them here.
const (
	notStarted  = "starting"
	waitsKafka  = "waiting_for_kafka"
	waitsRedis  = "waiting_for_redis"
	waitsBans   = "waiting_for_bans"
	notJoined   = "joining"
	notAnswered = "redis_unreachable"
	refilling   = "refilling" // of a partition
	stopping    = "stopping"
	stuck       = "stuck" // of /healthz
)

// readiness knows how the process stands. It is safe for concurrent use.
type readiness struct {
	cfg      *config.Config
	consumer atomic.Pointer[ingest.Consumer]

	mu    sync.Mutex
	stage *api.Reason // before the consumer runs, and at the end
	redis outage
}

// outage is since when something hasn't answered, and what was said last.
type outage struct {
	since time.Time
	err   error
}

func newReadiness(cfg *config.Config) *readiness {
	return &readiness{cfg: cfg, stage: &api.Reason{Reason: notStarted, What: "it has just been started", Remedy: "wait"}}
}

// waits notes what is waited for before the consumer runs, and what the last try
// came to; nil where it came to nothing that is worth telling.
func (r *readiness) waits(reason, what string, err error, remedy string) {
	if err != nil {
		what += ": " + err.Error()
	}
	r.set(&api.Reason{Reason: reason, What: what, Remedy: remedy})
}

func (r *readiness) waitsForKafka(err error) {
	r.waits(waitsKafka, "it waits for Kafka at "+strings.Join(r.cfg.Kafka.Brokers, ","), err, "make sure that a broker runs there; it continues by itself")
}

func (r *readiness) waitsForRedis(err error) {
	r.waits(waitsRedis, "it waits for Redis at "+strings.Join(r.cfg.Redis.Addresses, ","), err, "make sure that Redis runs there; it continues by itself")
}

// runs is called once the consumer may run, stops when it is to end.
func (r *readiness) runs(c *ingest.Consumer) {
	r.consumer.Store(c)
	r.set(nil)
}

func (r *readiness) stops() {
	r.set(&api.Reason{Reason: stopping, What: "it is shutting down and finishes the pieces in flight", Remedy: "none is needed"})
}

// set keeps the end: whatever was on its way to begin doesn't any more.
func (r *readiness) set(stage *api.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == nil || r.stage.Reason != stopping {
		r.stage = stage
	}
}

// lookEvery is how often Redis is looked at, and lookWithin how long that may take. A
// replica without a partition has no worker that would.
const (
	lookEvery  = 2 * time.Second
	lookWithin = 2 * time.Second
)

// watchRedis looks until the context ends. It asks what workers ask, so that it needs
// no right that they don't.
func (r *readiness) watchRedis(ctx context.Context, all *boards.Boards) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		within, cancel := context.WithTimeout(ctx, lookWithin)
		err := all.Answers(within, ledger.Partition{Topic: r.cfg.Kafka.Topics[0]})
		cancel()
		if ctx.Err() == nil {
			r.redisAnswered(err)
		}
	}
}

// redisAnswered notes what a look at Redis came to.
func (r *readiness) redisAnswered(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.redis.err == nil {
		r.redis.since = time.Now()
	}
	r.redis.err = err
}

// snapshot is the consumer's, empty while there is none.
func (r *readiness) snapshot() ingest.Snapshot {
	if c := r.consumer.Load(); c != nil {
		return c.Snapshot()
	}
	return ingest.Snapshot{}
}

// reasons says why the process isn't ready.
func (r *readiness) reasons() []api.Reason {
	r.mu.Lock()
	stage, redis := r.stage, r.redis
	r.mu.Unlock()
	var all []api.Reason
	if stage != nil {
		all = append(all, *stage)
	}
	if redis.err != nil && time.Since(redis.since) > patience {
		all = append(all, api.Reason{Reason: notAnswered, What: fmt.Sprintf("Redis at %s has not replied for %v: %v",
			strings.Join(r.cfg.Redis.Addresses, ","), time.Since(redis.since).Round(time.Second), redis.err),
			Remedy: "check Redis and the network; it continues by itself"})
	}
	if r.consumer.Load() == nil {
		return all
	}
	return append(all, ofConsumer(r.snapshot(), r.cfg.Kafka.Group, stage != nil)...)
}

// ofConsumer are the reasons that a consumer has. Outside of its group isn't one where
// it is leaving it. A member without a partition, one of more replicas than there are
// partitions, is ready to take over.
func ofConsumer(s ingest.Snapshot, group string, leaving bool) []api.Reason {
	var all []api.Reason
	if outside := time.Since(s.Since); !s.Joined && !leaving && (s.Joins == 0 || outside > patience) {
		what := fmt.Sprintf("it has not joined group %s yet", group)
		if s.Joins > 0 {
			what = fmt.Sprintf("it has been outside of group %s for %s", group, units.ShortDuration(outside))
		}
		if s.Err != nil {
			what += ": " + s.Err.Error()
		}
		all = append(all, api.Reason{Reason: notJoined, What: what, Remedy: "check Kafka if this lasts; it continues by itself"})
	}
	for _, p := range s.Partitions {
		if p.Refill > 0 {
			all = append(all, api.Reason{Reason: refilling, Partition: p.Field,
				What:   fmt.Sprintf("Redis was lost, and %s is being read again: %s to go; until then boards are partial", p.Field, units.Plural(p.Refill, "record")),
				Remedy: "wait, or restore a backup of Redis"})
		}
		switch {
		case p.Line.State == workers.StateHalted:
			all = append(all, api.Reason{Reason: p.Line.Reason, Partition: p.Field, What: p.Line.What, Remedy: p.Line.Remedy})
		case p.Line.State == workers.StateWaiting && time.Since(p.Since) > patience:
			all = append(all, api.Reason{Reason: workers.StateWaiting, Cause: p.Line.Reason, Partition: p.Field,
				What:   fmt.Sprintf("for %v: %s", time.Since(p.Since).Round(time.Second), p.Line.What),
				Remedy: p.Line.Remedy})
		}
	}
	return all
}

// stuckAfter is how long a worker that waits for nothing may not have come round, beside
// the deadlines of some calls one after the other. It comes round every second.
const stuckAfter = 5 * time.Minute

// broken are the reasons for which a restart would help: workers that hang, which
// nothing here ever should. A wait is none, since it ends by itself, nor is a halt,
// which is the same after a restart.
func (r *readiness) broken() []api.Reason {
	return hanging(r.snapshot(), stuckAfter+10*(r.cfg.Kafka.Timeout+r.cfg.Redis.Timeout))
}

func hanging(s ingest.Snapshot, limit time.Duration) []api.Reason {
	var all []api.Reason
	for _, p := range s.Partitions {
		if still := time.Since(p.Beat); p.Line.State == workers.StateRunning && !p.Beat.IsZero() && still > limit {
			all = append(all, api.Reason{Reason: stuck, Partition: p.Field,
				What:   fmt.Sprintf("it has made no progress for %v, for an unknown reason", still.Round(time.Second)),
				Remedy: "restart the process, which loses nothing; SIGQUIT stops it and logs its goroutines for a bug report"})
		}
	}
	return all
}
