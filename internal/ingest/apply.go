package ingest

// What becomes of a piece: sent until that is known, whatever Redis answers.
//
//	answer                            what is done
//	Applied, Fits                     the sweep goes on
//	Refusing                          the members that it names are taken out (refuse.go)
//	an error that passes              sent again: the ledger says whether it is in
//	Held                              waited for: a rebuild is about to swap the boards
//	Moved                             the flow ends, all that was folded is dropped (moved.go)
//	Sealed                            so it does: read again, what the windows would take is late
//	OtherBounds                       so it does: read again by the bounds that Redis has (borders.go)
//	any other answer, any other error the partition halts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// applier sends the pieces of a sweeper for one shard. It is one goroutine's at a time.
type applier struct {
	*partition
	number    int    // of the shard
	shard     string // names it in messages, where there are several: " on shard 3 of 12"
	standings Standings
	writing   func(error) // is given what it waits for, nil once it goes on
	stats     *Stats
	counts    *ShardStats // of the shard
	calls     *calls
}

// calls is the context of the calls of a sweeper's pieces: it outlives that of run by lastCall.
type calls struct {
	ctx context.Context //nolint:containedctx // see above
}

// apply sends a piece until its outcome is known: Applied, or Refusing. The call itself
// isn't ended with the context: a piece in flight is waited for a little longer, so that
// the next owner finds the ledger where it will stay.
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

// check asks what would come of a piece until that is known. Errors that pass and a hold
// are waited out; the answer is Fits or Refusing.
func (a *applier) check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	wait := retry.ForEver.Start()
	for {
		if ctx.Err() != nil {
			return ledger.Answer{}, context.Cause(ctx) // the next owner checks by itself
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

// failing waits after an error of the standings that may pass, and returns any other.
func (a *applier) failing(ctx context.Context, err error, wait *retry.Backoff) error {
	if a.standings.Classify(err) != ledger.Retry {
		return err
	}
	a.stats.Retries.Add(1)
	a.counts.Retries.Add(1)
	a.writing(err)
	return wait.Next(ctx)
}

// held waits a moment for a hold to go.
func (a *applier) held(ctx context.Context) error {
	a.writing(errHeld)
	return retry.Sleep(ctx, 100*time.Millisecond)
}

var errHeld = &health.Waiting{Reason: health.WaitsRebuild, Err: errors.New("a rebuild is about to swap the boards, or a reshard to switch to the new ones"),
	Remedy: "none is needed: it ends, or its hold runs out"}

// elsewhere is the error for an answer that isn't about the piece.
func (a *applier) elsewhere(p *ledger.Piece, got ledger.Answer) error {
	field := a.field + a.shard
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
		e := &boundsError{field: field, name: got.Window, listing: got.Found, start: got.Start, end: got.End}
		for i := range p.Windows {
			if p.Windows[i].Listing() == got.Window {
				e.window = p.Windows[i]
			}
		}
		return e
	case ledger.OtherRule:
		return &health.Halt{Reason: health.HaltRule, What: fmt.Sprintf("%s: the window %s is listed as [%s], by another rule than its board has here", field, got.Window, got.Found),
			Remedy: health.RuleRemedy}
	case ledger.Foreign:
		return &health.Halt{Reason: health.HaltForeign, What: fmt.Sprintf("%s: the score of %q in %s is none that this layout writes: something else changed it", field, strings.Join(got.Members, " "), got.Window), Remedy: health.RebuildRemedy}
	}
	a.log.DPanic("an outcome that nobody foresaw", zap.Stringer("outcome", got.Outcome))
	return &health.Halt{Reason: health.HaltRedis, What: fmt.Sprintf("%s: unexpected outcome %v", field, got.Outcome), Remedy: "report this as a bug"}
}
