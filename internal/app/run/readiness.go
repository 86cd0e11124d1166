package run

// Why the process is not ready: what it waits for at the start or the end, a dependency that does not answer,
// and partitions that do not make progress.

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

// patience is how long a partition may wait, and how long the process may be outside of its group or without
// Redis, until the process is not ready. Rebalances and single failovers are shorter.
const patience = 5 * time.Second

// Reasons, beside those of halts and waits, which concern a partition. docs/operations_test.go finds the list by
// this comment's beginning.
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

// readiness has the state of the process. It is safe for concurrent use.
type readiness struct {
	cfg      *config.Config
	consumer atomic.Pointer[ingest.Consumer]

	mu    sync.Mutex
	stage *api.Reason // before the consumer runs, and during the shutdown
	redis outage
}

// outage is the start of a failure to answer, and the last error.
type outage struct {
	since time.Time
	err   error
}

func newReadiness(cfg *config.Config) *readiness {
	return &readiness{cfg: cfg, stage: &api.Reason{Reason: notStarted, What: "it has just been started", Remedy: "wait"}}
}

// waits records what the process waits for before the consumer runs, with the error of the last try. err is nil
// if there is nothing to report.
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

// runs records that the consumer may run, stops that it is shutting down.
func (r *readiness) runs(c *ingest.Consumer) {
	r.consumer.Store(c)
	r.set(nil)
}

func (r *readiness) stops() {
	r.set(&api.Reason{Reason: stopping, What: "it is shutting down and finishes the pieces in flight", Remedy: "none is needed"})
}

// set keeps the stopping stage, which no later start replaces.
func (r *readiness) set(stage *api.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == nil || r.stage.Reason != stopping {
		r.stage = stage
	}
}

// lookEvery is how often Redis is checked, and lookWithin how long a check may take. A replica without a
// partition has no worker that would notice an outage.
const (
	lookEvery  = 2 * time.Second
	lookWithin = 2 * time.Second
)

// watchRedis checks Redis until the context ends. It sends the same command as workers, so it needs no
// additional right.
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

// redisAnswered records the result of a check.
func (r *readiness) redisAnswered(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.redis.err == nil {
		r.redis.since = time.Now()
	}
	r.redis.err = err
}

// snapshot returns the consumer's snapshot, empty if there is no consumer yet.
func (r *readiness) snapshot() ingest.Snapshot {
	if c := r.consumer.Load(); c != nil {
		return c.Snapshot()
	}
	return ingest.Snapshot{}
}

// reasons returns why the process is not ready.
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

// ofConsumer returns the consumer's reasons. While the consumer leaves its group, being outside of it is not a
// reason. A member without a partition, if there are more replicas than partitions, is ready to take over.
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

// stuckAfter is how long a worker that waits for nothing may go without a round, in addition to the deadlines
// of several calls in a row. Normally it makes a round every second.
const stuckAfter = 5 * time.Minute

// broken returns the reasons for which a restart would help: workers that hang, which would be a bug. A wait is
// not such a reason, since it ends by itself, nor is a halt, which would be the same after a restart.
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
