package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/retry"
)

// worker consumes one partition in one generation. Its run returns only when the generation ends: an earlier
// return would end the generation for every partition.
//
// The worker's goroutine locates, sweeps, and waits after a flow has ended; the reader of a flow runs in a
// second goroutine. status and lag are safe for concurrent use, since other goroutines show them.
type worker struct {
	*source.Handle
	shards   shards.All
	stats    *counts.Stats
	status   *health.Status
	lag      *health.LagTracker
	locator  *locate.Locator
	pipeline *pipeline
	flows    atomic.Pointer[flow] // the current flow
}

// run consumes the partition until the generation ends.
func (w *worker) run(ctx context.Context) {
	w.Log.Debug("partition assigned")
	defer w.Log.Debug("partition released")
	defer w.pipeline.known.free()
	defer w.pipeline.carried.reportMove(false)
	wait := retry.ForEver.Start()
	w.status.Waiting(nil) // reports that the worker has started
	for ctx.Err() == nil {
		began := time.Now()
		err := w.flow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			wait.Reset()
		}
		if !w.ended(ctx, err, wait, time.Since(began)) {
			return
		}
	}
}

// ended reacts to the end of a flow before the next one starts. It returns false if the generation has ended.
func (w *worker) ended(ctx context.Context, err error, wait *retry.Backoff, took time.Duration) bool {
	if differs, ok := errors.AsType[*shards.BoundsError](err); ok {
		if err = w.pipeline.differ(differs); err == nil {
			return retry.Sleep(ctx, 10*time.Millisecond) == nil
		}
	}
	if halt, ok := errors.AsType[*health.Halt](source.HaltOf(err, w.Field, w.shards)); ok {
		pause := time.Second
		if known := w.status.Halted(halt); known {
			// Verifying the cause may require reading a sweep again, so the worker doesn't do it all the time.
			pause = max(pause, min(took, 10*time.Second))
		}
		return retry.Sleep(ctx, pause) == nil
	}
	if errors.Is(err, errMoved) {
		w.pipeline.carried.moved(err)
		return retry.Sleep(ctx, 10*time.Millisecond) == nil // two workers that both claim the partition must not spin
	}
	if sealed, ok := errors.AsType[*allSealedError](err); ok {
		var final, open []string
		final, open, err = sealed.learn(w.pipeline.sealed)
		if err == nil {
			if len(final) > 0 {
				w.Log.Info("events have come for windows that are final: they are late for them", zap.Strings("windows", final))
			}
			if len(open) > 0 {
				w.Log.Info("windows that were final take events again", zap.Strings("windows", open))
			}
			return retry.Sleep(ctx, 10*time.Millisecond) == nil
		}
	}
	if errors.Is(err, locate.ErrAgain) {
		w.Log.Debug("looking at the ledger again", zap.Error(err))
	} else {
		w.status.Waiting(err)
		if health.IsStandings(err) {
			w.stats.Retries.Add(1)
			w.stats.Shard(health.ShardOf(err)).Retries.Add(1)
		} else {
			w.stats.KafkaTries.Add(1)
		}
	}
	return wait.Next(ctx) == nil
}

// flow finds the position and consumes from there until an error or ctx ends it.
func (w *worker) flow(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	at, err := w.locator.Locate(ctx)
	if err != nil {
		return err
	}
	w.pipeline.inherited = w.locator.Inherited
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.flows.Store(&flow{w.locator.TopicID, cancel})
	defer w.flows.Store(nil)
	return w.pipeline.run(ctx, at, replay.Endpoint{})
}

// ready waits for the resource whose absence ended the last flow.
func (w *worker) ready(ctx context.Context) error {
	p := w.pipeline
	if err := p.carried.awaitLost(ctx, p.rereads, w.status.Waiting); err != nil {
		return err
	}
	return p.outbox.Retry(ctx, w.status.Waiting)
}

// awaitLost waits until the reread token is free if the last flow ended for lack of it. Without this wait, the
// flow could read a whole batch only to find the token taken again.
func (c *carried) awaitLost(ctx context.Context, t *rereads, waits func(error)) error {
	if !c.lostTurn {
		return nil
	}
	c.lostTurn = false
	if err := t.await(ctx, waits, func() error { return nil }); err != nil {
		return err
	}
	t.end()
	return nil
}
