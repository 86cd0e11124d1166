package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

var (
	// ErrWentBack reports that the replay is past its endpoint, because the live ledger rolled back. What was
	// added can't be removed.
	ErrWentBack = errors.New("the live ledger went back")
	// ErrLogMoved reports that records were deleted from the log before they were read.
	ErrLogMoved = errors.New("the log begins later than before")
	// ErrShadowLost reports that the replay's own standings are gone.
	ErrShadowLost = errors.New("the shadow has nothing of it any more: its lease ran out, or Redis has lost it")
)

// UnreachableError reports that a shard of the replay isn't at its endpoint after everything was read, or can't
// ever be: the log's records don't lead to it.
type UnreachableError struct {
	Field     string
	Shard     int
	Of        ledger.Shards
	Until, At ledger.Position // the endpoint, and the replay's position
}

func (e *UnreachableError) Error() string {
	why := "its log has been read, and the records don't add up to that"
	if !e.Of.CanBeAt(e.Shard, e.Until) {
		why = fmt.Sprintf("no sweep of the shard can be there, as its hashes are from %016x to %016x", e.Of.From(e.Shard), e.Of.From(e.Shard+1)-1)
	}
	return fmt.Sprintf("%s is at %v in the live ledger, and the rebuild at %v: %s", e.Field, e.Until, e.At, why)
}

// replayWorker reads one partition again, from the position of the shadow's ledger to an endpoint. It uses the
// same pipeline as a consumer, but finds its position and ends in other ways. Only one goroutine uses it at a
// time.
type replayWorker struct {
	*partition
	shards   shards
	status   *health.Status
	pipeline *pipeline
	short    start.Shortened
}

// run reads a partition from the given positions of the shards to an endpoint, and waits out transient errors.
// Shards for which nothing is read are beyond.
func (w *replayWorker) run(ctx context.Context, at ledger.Positions, until endpoint) error {
	wait := retry.ForEver.Start()
	for !until.reached(at) {
		for i, p := range at {
			if p != beyond && !Leads(p, *until.at) {
				return fmt.Errorf("%s%s is at %v, and was to reach %v: %w", w.field, onShard(i, w.shards.count()), p, *until.at, ErrWentBack)
			}
			if p != beyond && !w.shards.count().CanBeAt(i, *until.at) {
				return w.unreachable(i, p, until)
			}
		}
		err := w.learn(ctx, at, until)
		if err == nil {
			err = w.pipeline.run(ctx, at, until)
		}
		if differs, ok := errors.AsType[*boundsError](err); ok {
			err = w.pipeline.differ(differs)
		}
		switch halt, halted := errors.AsType[*health.Halt](haltOf(err, w.field, w.shards)); {
		case errors.Is(err, errEndpointReached):
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
		if outside && !until.reached(at) {
			if err := w.outside(ctx, at.Lowest(), *until.at); err != nil {
				return err
			}
		}
	}
	return nil
}

// through checks that a flow that has read everything has moved its shard to the endpoint. If there are several
// shards, some may legitimately be elsewhere.
func (w *replayWorker) through(until endpoint) error {
	for i, p := range w.pipeline.carried.stood {
		if p != beyond && p != *until.at && !until.lowest {
			return w.unreachable(i, p, until)
		}
	}
	return nil
}

func (w *replayWorker) unreachable(shard int, at ledger.Position, until endpoint) error {
	return &UnreachableError{Field: w.field, Shard: shard, Of: w.shards.count(), Until: *until.at, At: at}
}

// learn reads the rules of the sweep in which the endpoint lies, and of the sweeps in which the shadow is,
// which were endpoints before. The live ledger's shard stores them.
func (w *replayWorker) learn(ctx context.Context, at ledger.Positions, until endpoint) error {
	for i, p := range at {
		for _, in := range []ledger.Position{p, *until.at} {
			if p == beyond || w.pipeline.books.has(in.Rules) {
				continue
			}
			state, err := w.shards[i].State(ctx)
			if err != nil {
				return err
			}
			if err := w.pipeline.books.learn(in.Rules, state.Rules, fmt.Sprintf("the sweep of %s at %v%s", w.field, in, onShard(i, w.shards.count()))); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside decides how to continue if a broker doesn't have an offset, by the leader's view of the log; nil
// means to fetch it again. An offset past the end may be reported by a follower that still believes it is the
// leader.
func (w *replayWorker) outside(ctx context.Context, from int64, until ledger.Position) error {
	all, err := kafkaconn.Logs(ctx, w.kafka, w.Topic, w.Number)
	log := all[w.Number]
	switch {
	case err != nil:
		w.short = start.Shortened{} // the next answer may be a new leader's
	case log.Start > from:
		return fmt.Errorf("%w: %s at offset %d, and offset %d wasn't read yet", ErrLogMoved, w.field, log.Start, from)
	case log.End < until.To:
		err = w.short.Confirm(w.field, until, log)
	default:
		w.short = start.Shortened{}
		return nil
	}
	if halt, ok := errors.AsType[*health.Halt](haltOf(err, w.field, w.shards)); ok {
		return halt
	}
	w.status.Waiting(err)
	return nil
}

// shadowed returns the positions of the shadow's ledgers, for the shards that aren't beyond. It retries
// transient errors.
func (w *replayWorker) shadowed(ctx context.Context, was ledger.Positions, until endpoint) (ledger.Positions, error) {
	all := slices.Clone(was)
	err := w.shards.each(func(i int, s Standings) error {
		if was[i] == beyond {
			return nil
		}
		at, err := w.shadow(ctx, s)
		all[i] = until.place(at)
		return err
	})
	return all, err
}

func (w *replayWorker) shadow(ctx context.Context, s Standings) (ledger.Position, error) {
	wait := retry.ForEver.Start()
	for {
		text, err := s.Position(ctx, w.Partition)
		if err == nil {
			return positionOf(w.field, text)
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

func positionOf(field, text string) (ledger.Position, error) {
	if text == "" {
		return ledger.Position{}, fmt.Errorf("%s: %w", field, ErrShadowLost)
	}
	at, err := ledger.Parse(text)
	if err != nil {
		return ledger.Position{}, fmt.Errorf("the shadow's ledger of %s: %w", field, err)
	}
	return at, nil
}

// Leads reports whether a sweep at one position can reach another.
func Leads(from, to ledger.Position) bool {
	switch {
	case from == to:
		return true
	case from.Sweeping() && from.From == to.From && from.To == to.To && from.Rules == to.Rules:
		return to.Hash > from.Hash
	case from.Sweeping():
		return to.From >= from.To
	}
	return to.From > from.From || to.From == from.From && to.Sweeping()
}

// waitOut calls ask until it returns no transient error.
func waitOut(ctx context.Context, ask func() error) error {
	return retry.ForEver.Do(ctx, func(err error) bool {
		if code, answered := errors.AsType[kafka.Error](err); answered {
			return kafkaconn.Classify(code) == ledger.Retry
		}
		_, network := errors.AsType[net.Error](err)
		return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}, ask)
}
