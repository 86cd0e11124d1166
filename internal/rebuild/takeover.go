package rebuild

// The end of a rebuild that pauses no consumer. Every window that accepts events is replaced, so the new
// boards may be slightly behind: the consumers continue from their ledger and refill them, as after a
// rollback of Redis.

import (
	"context"
	"slices"
	"time"
)

// pauses reports whether the rebuild must hold ingestion: it keeps windows, in which an event must not
// count twice, or it compares boards as of one instant.
func (a *attempt) pauses() bool {
	return a.Compare || slices.ContainsFunc(a.left(), func(p *part) bool { return p.result.Plan.Keeps() })
}

// takeOver replaces the boards of one shard after the other. ErrKeeps reports that a window must be kept
// after all.
func (a *attempt) takeOver(ctx context.Context) error {
	if err := a.alignBans(ctx); err != nil {
		return err
	}
	for _, p := range a.left() {
		if a.DryRun {
			if err := p.live.OfShard(p.plan(ctx)); err != nil {
				return err
			}
			p.result.done = true
			continue
		}
		if err := a.takeOverShard(ctx, p); err != nil {
			return p.live.OfShard(err)
		}
		a.through(ctx, p)
	}
	return nil
}

// takeOverShard repeats the call until it has replaced the boards. Between two tries it reads on, for
// windows and partitions that were added meanwhile.
func (a *attempt) takeOverShard(ctx context.Context, p *part) error {
	pauses := betweenTries.Start()
	for n := 1; ; n++ {
		missed, err := p.replace(ctx, time.Now(), p.TakeOver)
		if missed == nil || err != nil {
			return err
		}
		if n%5 == 0 {
			p.notef("the boards were not replaced in %d tries: %v; trying again", n, missed)
		}
		if err := pauses.Next(ctx); err != nil {
			return err
		}
		if err := a.alignBans(ctx); err != nil {
			return err
		}
		if err := a.round(ctx); err != nil {
			return err
		}
	}
}
