package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
)

// attempt is one attempt to rebuild all shards, from taking the locks to releasing them. A shard that an
// earlier attempt finished is only locked.
type attempt struct {
	*Job
	reads  *replay.Replay
	parts  []*part // one per shard
	result *Result
}

func (j *Job) attempt(ctx context.Context, result *Result, run time.Time, try int) error {
	a := &attempt{Job: j, result: result}
	result.Records, result.TooLarge = 0, 0
	for shard, live := range j.Live {
		s := &result.Shards[shard]
		if !s.done {
			*s = ShardResult{Addr: live.Addr()}
		}
		a.parts = append(a.parts, &part{Job: j, shard: shard, live: live, result: s, begun: map[string]int64{}, until: map[string]int64{}})
	}
	states, err := a.states(ctx)
	if err != nil {
		return err
	}
	if err := a.lock(ctx, run, try == 1); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	renewed := a.renew(ctx, cancel)
	err = a.run(ctx, states)
	if a.reads != nil {
		a.result.Records, a.result.TooLarge = a.reads.Stats().Records.Load(), a.reads.Stats().Dead(event.TooLarge)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	err = shadow.Full(err)
	// The lease is renewed until the keys are removed, so that no other rebuild starts meanwhile.
	a.leave(ctx)
	cancel(nil)
	<-renewed
	return err
}

// left returns the parts that are not done.
func (a *attempt) left() []*part {
	return slices.DeleteFunc(slices.Clone(a.parts), func(p *part) bool { return p.result.done })
}

// each calls do for some shards concurrently, and waits for all. It returns the first shard's error, which
// names that shard.
func each(parts []*part, do func(p *part) error) error {
	if len(parts) == 1 {
		return parts[0].live.OfShard(do(parts[0]))
	}
	errs := make([]error, len(parts))
	var together sync.WaitGroup
	for i, p := range parts {
		together.Go(func() { errs[i] = p.live.OfShard(do(p)) })
	}
	together.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// states reads the live ledgers, and returns an error if the boards cannot be rebuilt.
func (a *attempt) states(ctx context.Context) ([]ledger.State, error) {
	states := make([]ledger.State, len(a.parts))
	err := each(a.parts, func(p *part) (err error) {
		if states[p.shard], err = p.state(ctx); err != nil {
			return err
		}
		return p.live.CheckSchema(states[p.shard].Schema)
	})
	if err == nil && !slices.ContainsFunc(states, func(s ledger.State) bool { return len(s.Ledger) > 0 || s.Windows > 0 }) {
		err = ErrNothing
	}
	return states, err
}

// run reads the log and swaps.
func (a *attempt) run(ctx context.Context, live []ledger.State) error {
	if err := a.alignBans(ctx); err != nil {
		return err
	}
	var shadows []*shadow.Store
	for _, p := range a.parts {
		shadows = append(shadows, p.Shadow())
	}
	var err error
	if a.reads, err = a.Replay(shadows); err != nil {
		return err
	}
	for _, p := range a.parts {
		if p.reads = a.reads; p.result.done {
			a.reads.Leave(p.shard)
		}
	}
	if err := a.begin(ctx, live); err != nil {
		return err
	}
	if err := a.plan(ctx); err != nil {
		return err
	}
	plan := a.result.Plan
	if a.Watch.Planned != nil {
		a.Watch.Planned(plan)
	}
	if len(plan.Refused) > 0 {
		return &shadow.RefusedError{Reasons: plan.Refused}
	}
	if a.idle() && len(a.Choice.Boards) == 0 {
		return nil
	}
	if unknown := plan.unknown(a.Choice.Boards); len(unknown) > 0 {
		a.Watch.notef("no window of %s is listed: searching the log for it", strings.Join(unknown, ", "))
	}
	err = a.reading(ctx)
	if err == nil {
		err = a.known(ctx)
	}
	if err != nil {
		return err
	}
	if !a.pauses() {
		err = a.takeOver(ctx)
		if !errors.Is(err, shadow.ErrKeeps) {
			return err
		}
	}
	return a.turns(ctx)
}

// begin finds the start of each partition, and writes it into the shadows.
func (a *attempt) begin(ctx context.Context, live []ledger.State) error {
	fields, err := a.orphaned(ctx, live)
	if err != nil {
		return err
	}
	for _, p := range a.parts {
		if s := &live[p.shard]; p.result.done {
			live[p.shard] = ledger.State{Now: s.Now, Asked: s.Asked} // no constraint on the start
		}
	}
	starts, err := a.reads.Starts(ctx, a.From, live, fields)
	if err != nil {
		return err
	}
	return each(a.left(), func(p *part) error { return p.begin(ctx, starts[p.shard], &live[p.shard]) })
}

// orphaned fills in positions for empty live ledgers, and returns the partitions of all shards.
//
// The positions that such a shard's boards had reached are unknown. Any offset is correct, since all its
// boards are replaced and consumers continue from there. The group's committed offsets are used, so that no
// dead letter is lost.
func (a *attempt) orphaned(ctx context.Context, live []ledger.State) (fields []string, err error) {
	union := map[string]bool{}
	for i := range live {
		for field := range live[i].Ledger {
			union[field] = true
		}
	}
	if fields = slices.Sorted(maps.Keys(union)); len(fields) == 0 {
		if fields, err = a.reads.Fields(ctx); err != nil {
			return nil, err
		}
	}
	var committed map[string]int64
	for _, p := range a.left() {
		if p.orphaned = len(live[p.shard].Ledger) == 0; !p.orphaned {
			continue
		}
		if committed == nil {
			if committed, err = a.reads.Committed(ctx, fields); err != nil {
				return nil, err
			}
		}
		live[p.shard].Ledger = map[string]string{}
		for field, offset := range committed {
			live[p.shard].Ledger[field] = ledger.At(offset).String()
		}
	}
	return fields, nil
}

// plan plans the action for every window, on the remaining shards.
func (a *attempt) plan(ctx context.Context) error {
	if err := each(a.left(), func(p *part) error { return p.plan(ctx) }); err != nil {
		return err
	}
	a.result.sum()
	return nil
}

// idle reports whether there is nothing to do on any shard.
func (a *attempt) idle() bool {
	return !slices.ContainsFunc(a.parts, func(p *part) bool { return p.result.done || !p.result.Plan.idle() })
}

// known refuses a board that is neither listed nor found in the log: its name may be mistyped, and the
// rebuild would rebuild nothing.
func (a *attempt) known(ctx context.Context) error {
	if len(a.Choice.Boards) == 0 {
		return nil
	}
	if err := a.plan(ctx); err != nil {
		return err
	}
	if unknown := a.result.Plan.unknown(a.Choice.Boards); len(unknown) > 0 {
		return fmt.Errorf("no window is of the board %s, neither listed nor in the log: nothing was changed", strings.Join(unknown, ", "))
	}
	return nil
}

// bulkAgain is the age from which the common read is repeated for all remaining shards, rather than read
// for each shard alone.
const bulkAgain = 2 * time.Second

// turns finishes one shard after the other, so that at most one is held at a time.
func (a *attempt) turns(ctx context.Context) error {
	read := time.Now()
	for _, p := range a.left() {
		if len(a.left()) > 1 && time.Since(read) > bulkAgain {
			if err := a.round(ctx); err != nil {
				return err
			}
			read = time.Now()
		}
		if err := p.turn(ctx, a.result); err != nil {
			return p.live.OfShard(err)
		}
		a.through(ctx, p)
	}
	return nil
}

// through marks a shard as done. If there are several shards it removes the shard's copy at once, to free
// memory; keys that remain are removed when all shards are done.
func (a *attempt) through(ctx context.Context, p *part) {
	if p.result.done = true; len(a.parts) > 1 {
		a.reads.Leave(p.shard)
		_ = p.Unlink(ctx, removalPause)
	}
}
