package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// replayer reads one partition again, from the position of the shadow's ledger to an endpoint. It uses the
// same pipeline as a consumer, but finds its position and ends in other ways. Only one goroutine uses it at a
// time.
type replayer struct {
	*source.Handle
	shards   shards.All
	status   *health.Status
	pipeline *pipeline
	short    start.Shortened
}

// run reads a partition from the given positions of the shards to an endpoint, and waits out transient errors.
// Shards for which nothing is read are beyond.
func (w *replayer) run(ctx context.Context, at ledger.Positions, until replay.Endpoint) error {
	wait := retry.ForEver.Start()
	for !until.Reached(at) {
		for i, p := range at {
			if p != replay.Beyond && !replay.Leads(p, *until.At) {
				return fmt.Errorf("%s%s is at %v, and was to reach %v: %w", w.Field, shards.On(i, w.shards.Count()), p, *until.At, replay.ErrWentBack)
			}
			if p != replay.Beyond && !w.shards.Count().CanBeAt(i, *until.At) {
				return w.unreachable(i, p, until)
			}
		}
		err := w.learn(ctx, at, until)
		if err == nil {
			err = w.pipeline.run(ctx, at, until)
		}
		if differs, ok := errors.AsType[*shards.BoundsError](err); ok {
			err = w.pipeline.differ(differs)
		}
		switch halt, halted := errors.AsType[*health.Halt](source.HaltOf(err, w.Field, w.shards)); {
		case errors.Is(err, replay.ErrReached):
			return w.through(until)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case halted:
			return halt
		case err != nil && w.shards.Classify(err) == ledger.Refuse:
			return err
		case !errors.Is(err, errMoved):
			w.status.Waiting(err)
		}
		if err := wait.Next(ctx); err != nil {
			return err
		}
		outside := errors.Is(err, kafka.OffsetOutOfRange)
		if at, err = w.shadowed(ctx, at, until); err != nil {
			return err
		}
		if outside && !until.Reached(at) {
			if err := w.outside(ctx, at.Lowest(), *until.At); err != nil {
				return err
			}
		}
	}
	return nil
}

// through checks that a flow that has read everything has moved its shard to the endpoint. If there are several
// shards, some may legitimately be elsewhere.
func (w *replayer) through(until replay.Endpoint) error {
	for i, p := range w.pipeline.carried.stood {
		if p != replay.Beyond && p != *until.At && !until.Lowest {
			return w.unreachable(i, p, until)
		}
	}
	return nil
}

func (w *replayer) unreachable(shard int, at ledger.Position, until replay.Endpoint) error {
	return &replay.UnreachableError{Field: w.Field, Shard: shard, Of: w.shards.Count(), Until: *until.At, At: at}
}

// learn reads the rules of the sweep in which the endpoint lies, and of the sweeps in which the shadow is,
// which were endpoints before. The live ledger's shard stores them.
func (w *replayer) learn(ctx context.Context, at ledger.Positions, until replay.Endpoint) error {
	for i, p := range at {
		for _, in := range []ledger.Position{p, *until.At} {
			if p == replay.Beyond || w.pipeline.books.Has(in.Rules) {
				continue
			}
			state, err := w.shards[i].State(ctx)
			if err != nil {
				return err
			}
			if err := w.pipeline.books.Learn(in.Rules, state.Rules, fmt.Sprintf("the sweep of %s at %v%s", w.Field, in, shards.On(i, w.shards.Count()))); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside decides how to continue if a broker doesn't have an offset, by the leader's view of the log; nil
// means to fetch it again. An offset past the end may be reported by a follower that still believes it is the
// leader.
func (w *replayer) outside(ctx context.Context, from int64, until ledger.Position) error {
	all, err := kafkaconn.Logs(ctx, w.Kafka, w.Topic, w.Number)
	log := all[w.Number]
	switch {
	case err != nil:
		w.short = start.Shortened{} // the next answer may be a new leader's
	case log.Start > from:
		return fmt.Errorf("%w: %s at offset %d, and offset %d wasn't read yet", replay.ErrLogMoved, w.Field, log.Start, from)
	case log.End < until.To:
		err = w.short.Confirm(w.Field, until, log)
	default:
		w.short = start.Shortened{}
		return nil
	}
	if halt, ok := errors.AsType[*health.Halt](source.HaltOf(err, w.Field, w.shards)); ok {
		return halt
	}
	w.status.Waiting(err)
	return nil
}

// shadowed returns the positions of the shadow's ledgers, for the shards that aren't beyond. It retries
// transient errors.
func (w *replayer) shadowed(ctx context.Context, was ledger.Positions, until replay.Endpoint) (ledger.Positions, error) {
	all := slices.Clone(was)
	err := w.shards.Each(func(i int, s shards.Standings) error {
		if was[i] == replay.Beyond {
			return nil
		}
		at, err := w.shadow(ctx, s)
		all[i] = until.Place(at)
		return err
	})
	return all, err
}

func (w *replayer) shadow(ctx context.Context, s shards.Standings) (ledger.Position, error) {
	wait := retry.ForEver.Start()
	for {
		text, err := s.Position(ctx, w.Partition)
		if err == nil {
			return replay.PositionOf(w.Field, text)
		}
		if w.shards.Classify(err) != ledger.Retry {
			return ledger.Position{}, err
		}
		w.status.Waiting(err)
		if err := wait.Next(ctx); err != nil {
			return ledger.Position{}, err
		}
	}
}
