// Package reshard copies the standings under a prefix to another number of shards, next to the existing
// ones, and switches to the copy.
//
//	lock ─▶ level ─▶ hold ─▶ copy ─▶ compare ─▶ switch ─▶ keep ─▶ mark the old shards, remove them
//	  └── consumers pause between two batches ──┘  └─ they adopt the new number
//
// This is safe because a position denotes a set of counted events, and the copy's scores and positions are
// those of one instant at which the same events counted on every shard (level). Whatever happens to the old
// shards later, such as a late piece of a paused process, the positions of the new shards determine where
// the log is read from.
//
// The switch is one write of one key: the record of the prefix's number of shards, which all readers and
// consumers follow. Before it, nothing of the old shards changes, and all keys of the copy expire. After
// it, Keep removes the expiry of the copy's keys, and last the mark that it is a copy. If a reshard dies
// between the two, the first process that uses the copy calls Keep.
package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/retry"
)

// Job is a reshard to run.
type Job struct {
	View  *inventory.View // the current shards
	To    ledger.Shards
	Owner string // the owner's name, shown to others

	// Lease is how long consumers wait for a reshard that has died.
	Lease time.Duration
	// Level is how long the reshard waits for consumers to bring all shards to the same positions.
	Level time.Duration

	Watch Watch

	page pageSize // what a call reads; zero: the default
}

// Watch receives the progress of a reshard. No field may be nil.
type Watch struct {
	Step   func(Step)
	Copied func(standings int64) // standings so far
	Note   func(line string)
}

// Step is a step of a reshard.
type Step int

// The steps, in order.
const (
	Leveling  Step = iota // consumers finish their batches
	Copying               // ingestion is held
	Comparing             // the copy is read again
	Switching             // readers and consumers adopt the copy
	Removing              // the old shards are removed
)

// Plan is the extent of a reshard.
type Plan struct {
	From, To  ledger.Shards
	Windows   int   // a window on several shards counts once
	Standings int64 // members, summed over windows
}

// Result is the result of a reshard.
type Result struct {
	Plan
	Switched bool
	// Unsure: the switch was sent, and its reply was lost.
	Unsure   bool
	Checksum uint64        // over every window, member and score, in any order
	Held     time.Duration // from asking consumers to pause to the switch
	Took     time.Duration
	Removed  int // number of removed keys of the old shards
}

// StandsError reports that the prefix already has boards of the wanted number of shards.
type StandsError struct {
	Prefix string
	Shards ledger.Shards
}

func (e *StandsError) Error() string {
	return fmt.Sprintf("under the prefix %q boards with %d shards already exist beside the live ones: drop them first (consumer drop)", e.Prefix, int(e.Shards))
}

// ErrSame reports that the prefix already has the wanted number of shards.
var ErrSame = errors.New("it has that number of shards already")

// ErrHeld reports that the reshard has lost its lock or a hold: it was paused for longer than its lease, or
// Redis was rolled back.
var ErrHeld = errors.New("the reshard's lease is over, or Redis has lost it")

// Survey counts the windows and standings to copy.
func Survey(ctx context.Context, v *inventory.View, to ledger.Shards) (*Plan, error) {
	p := &Plan{From: v.Shards, To: to}
	windows := map[string]bool{}
	for _, s := range v.Stores() {
		found, err := s.ListedWindows(ctx, func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		counts, err := s.MembersOf(ctx, found)
		if err != nil {
			return nil, err
		}
		hidden, err := s.HiddenOf(ctx, found)
		if err != nil {
			return nil, err
		}
		for i, w := range found {
			windows[w.Listing()] = true
			p.Standings += counts[i] + hidden[i]
		}
	}
	p.Windows = len(windows)
	return p, nil
}

// Run runs the reshard. If it returns an error the old shards are unchanged, unless the result is Switched
// or Unsure.
func (j *Job) Run(ctx context.Context) (*Result, error) {
	began := time.Now()
	r := &run{Job: j, from: j.View.Stores(), to: j.View.Sibling(j.To), result: &Result{Plan: Plan{From: j.View.Shards, To: j.To}}}
	err := r.run(ctx)
	r.result.Took = time.Since(began)
	if err != nil {
		return r.result, fmt.Errorf("copy the standings under %q to %d shards: %w", j.View.Prefix, int(j.To), err)
	}
	return r.result, nil
}

// run is a running reshard.
type run struct {
	*Job
	from, to []*ranking.Store
	result   *Result
	lease    *lease
	before   string // the record's expected value
	schema   string // the schema of the copy
}

func (r *run) run(ctx context.Context) error {
	if r.To == r.View.Shards {
		return r.again(ctx)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	asked := time.Now()
	var err error
	if r.lease, err = take(ctx, r.Job, r.from); err != nil {
		return err
	}
	defer r.lease.end()
	going := r.lease.ctx
	err = r.copied(going)
	if err == nil {
		r.Watch.Step(Switching)
		err = r.switched(ctx)
	}
	if !r.result.Switched {
		if !r.result.Unsure {
			r.forget(ctx) // the keys that it cannot remove expire
		}
		if ctx.Err() == nil && going.Err() != nil {
			return context.Cause(going)
		}
		return err
	}
	r.result.Held = time.Since(asked)
	return r.after(ctx)
}

// prepare checks that the reshard is possible.
func (r *run) prepare(ctx context.Context) error {
	number, err := r.View.Number(ctx)
	if err != nil {
		return err
	}
	if number.Shards > 0 {
		r.before = fmt.Sprint(int(number.Shards))
	}
	if r.schema, err = r.View.SchemaFor(r.To); err != nil {
		return err
	}
	for _, s := range r.to {
		st, err := s.State(ctx)
		if err != nil {
			return err
		}
		if st.Schema == "" || ranking.LeftFor(st.Schema) > 0 {
			continue
		}
		if copied, err := s.CopyOf(ctx); err != nil {
			return err
		} else if copied == "" {
			return &StandsError{r.View.Prefix, r.To}
		}
	}
	return nil
}

// copied makes a complete and compared copy next to the old shards.
func (r *run) copied(ctx context.Context) error {
	if err := r.mark(ctx); err != nil {
		return err
	}
	if err := r.clear(ctx); err != nil {
		return err
	}
	r.Watch.Step(Leveling)
	beside, err := r.level(ctx)
	if err != nil {
		return err
	}
	r.Watch.Step(Copying)
	c, err := newCopier(ctx, r, beside)
	if err != nil {
		return err
	}
	if err := c.copy(ctx); err != nil {
		return err
	}
	if err := c.listSets(ctx); err != nil {
		return err
	}
	if err := c.copyNames(ctx); err != nil {
		return err
	}
	r.Watch.Step(Comparing)
	if err := c.compare(ctx); err != nil {
		return err
	}
	return c.finish(ctx)
}

// betweenTries is the back-off between calls to Redis.
var betweenTries = retry.Policy{First: 20 * time.Millisecond, Longest: time.Second}

// tries calls do until it succeeds or fails with a permanent error.
func tries(ctx context.Context, do func() error) error {
	return betweenTries.Do(ctx, func(err error) bool {
		return ctx.Err() == nil && !errors.Is(err, ErrHeld) && ranking.Classify(err) == ledger.Retry
	}, do)
}
