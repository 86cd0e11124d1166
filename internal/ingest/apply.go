package ingest

// This file sends a piece until its outcome is known, and decides what follows from Redis's answer.
//
//	answer                            what follows
//	Applied, Fits                     the sweep continues
//	Refusing                          the named members are taken out of the batch (refuse.go)
//	a transient error                 the piece is sent again: the ledger shows whether it was applied
//	Held                              the applier waits: a rebuild is about to swap the boards
//	Moved                             the flow ends and drops everything folded (carried.go)
//	Sealed, Unsealed                  as Moved; the events are read again without or with these windows (sealed.go)
//	OtherBounds                       as Moved; the events are read again with Redis's bounds (package shards)
//	any other answer or error         the partition halts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// applier sends the pieces of a sweeper to one shard. Only one goroutine uses it at a time.
type applier struct {
	*source.Handle
	number    int    // of the shard
	shard     string // names the shard in messages, if there are several: " on shard 3 of 12"
	standings shards.Standings
	writing   func(error) // receives what the applier waits for; nil once it continues
	stats     *counts.Stats
	counts    *counts.Shard // of the shard
	calls     *calls
}

// calls holds the context of the calls that send pieces. It ends lastCall after the context of the sweeper's
// run.
type calls struct {
	ctx context.Context //nolint:containedctx // see above
}

// apply sends a piece until its outcome is known: Applied or Refusing. The call itself doesn't end with ctx but
// a little later, so that a piece in flight completes and the next owner finds the ledger at its final
// position.
func (a *applier) apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	wait := retry.ForEver.Start()
	for {
		answer, took, err := a.standings.Apply(a.calls.ctx, p)
		if err != nil {
			if err := a.failing(ctx, err, wait); err != nil {
				return ledger.Answer{}, 0, err
			}
			continue
		}
		switch answer.Outcome {
		case ledger.Applied:
			a.writing(nil)
			return answer, took, nil
		case ledger.Refusing:
			return answer, took, nil
		case ledger.Held:
			if err := a.held(ctx); err != nil {
				return ledger.Answer{}, 0, err
			}
		default:
			return ledger.Answer{}, 0, a.elsewhere(p, answer)
		}
	}
}

// check determines what Apply would answer, until the answer is Fits or Refusing. It waits out transient errors
// and a hold.
func (a *applier) check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	wait := retry.ForEver.Start()
	for {
		if ctx.Err() != nil {
			return ledger.Answer{}, context.Cause(ctx) // the next owner checks for itself
		}
		answer, err := a.standings.Check(a.calls.ctx, p)
		switch {
		case err != nil:
			if err := a.failing(ctx, err, wait); err != nil {
				return ledger.Answer{}, err
			}
		case answer.Outcome == ledger.Fits, answer.Outcome == ledger.Refusing:
			a.writing(nil)
			return answer, nil
		case answer.Outcome == ledger.Held:
			if err := a.held(ctx); err != nil {
				return ledger.Answer{}, err
			}
		default:
			return ledger.Answer{}, a.elsewhere(p, answer)
		}
	}
}

// failing waits after a transient error of the standings, and returns any other error.
func (a *applier) failing(ctx context.Context, err error, wait *retry.Backoff) error {
	if a.standings.Classify(err) != ledger.Retry {
		return err
	}
	a.stats.Retries.Add(1)
	a.counts.Retries.Add(1)
	a.writing(err)
	return wait.Next(ctx)
}

// held waits 100 ms for a hold to end.
func (a *applier) held(ctx context.Context) error {
	a.writing(shards.ErrHeld)
	return retry.Sleep(ctx, 100*time.Millisecond)
}

// elsewhere returns the error for an answer with which the piece can't be sent again as it is.
func (a *applier) elsewhere(p *ledger.Piece, got ledger.Answer) error {
	field := a.Field + a.shard
	switch got.Outcome {
	case ledger.Moved:
		return &movedError{field, p.Expected, got.Found}
	case ledger.Sealed:
		return &sealedError{field: field, shard: a.number, from: p.Expected.From, windows: got.Windows}
	case ledger.Unsealed:
		return &sealedError{field: field, shard: a.number, open: true, windows: got.Windows}
	case ledger.OtherSchema:
		if err := a.standings.CheckSchema(got.Found); err != nil {
			return &health.Halt{Reason: health.HaltSchema, What: fmt.Sprintf("%s: %v", field, err), Remedy: "see there"}
		}
		return fmt.Errorf("%s: %w: Redis has lost its schema", field, errMoved)
	case ledger.Lost:
		return &health.Halt{Reason: health.HaltBoard, What: fmt.Sprintf("%s: the board %s is listed, and a key of it is gone from Redis", field, got.Window), Remedy: health.RebuildRemedy}
	case ledger.Unlisted:
		return &health.Halt{Reason: health.HaltUnlisted, What: fmt.Sprintf("%s: the board %s has a key in Redis that isn't listed: something else wrote it, or a part of Redis was restored", field, got.Window),
			Remedy: "delete that key if it isn't yours, else " + health.RebuildRemedy}
	case ledger.OtherBounds:
		e := &shards.BoundsError{Field: field, Name: got.Window, Listing: got.Found, Start: got.Start, End: got.End}
		for i := range p.Windows {
			if p.Windows[i].Listing() == got.Window {
				e.Window = p.Windows[i]
			}
		}
		return e
	case ledger.OtherRule:
		return &health.Halt{Reason: health.HaltRule, What: fmt.Sprintf("%s: the window %s is listed as [%s], by another rule than its board has here", field, got.Window, got.Found),
			Remedy: health.RuleRemedy}
	case ledger.Foreign:
		return &health.Halt{Reason: health.HaltForeign, What: fmt.Sprintf("%s: this layout cannot have written the score of %q in %s: something else changed it", field, strings.Join(got.Members, " "), got.Window), Remedy: health.RebuildRemedy}
	}
	a.Log.DPanic("unknown apply outcome", zap.Stringer("outcome", got.Outcome))
	return &health.Halt{Reason: health.HaltRedis, What: fmt.Sprintf("%s: unexpected outcome %v", field, got.Outcome), Remedy: "report this as a bug"}
}

// writing combines the waits of a sweeper's shards into one.
type writing struct {
	note func(error)

	mu   sync.Mutex // guards errs, and is held during note, so that the latest wait is noted last
	errs []error
}

// of records what a shard waits for; nil once it continues.
func (w *writing) of(shard int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[shard] = err
	w.note(health.WaitsForShards(w.errs))
}
