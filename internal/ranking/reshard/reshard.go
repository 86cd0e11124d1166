// Package reshard copies the standings under a prefix to another number of shards, beside the
// ones there are, and switches over.
//
//	lock ─▶ level ─▶ hold ─▶ copy ─▶ compare ─▶ switch ─▶ keep ─▶ mark the old ones, remove
//	  └── consumers pause between two batches ──┘  └─ they take up the new number
//
// What makes it safe: a position is a set of counted events, and the copy's scores and
// positions are those of one moment, at which the same events counted in every shard (level).
// So whatever becomes of the old shards after that, a late piece of a paused process for
// instance, the new ones say themselves from where the log is to be read.
//
// The switch is one write of one key, the record of the prefix's number of shards, which whoever
// reads or writes goes by. Until then nothing of the old shards was changed, and all keys of the
// copy expire. After it the copy is made to stay, first what it consists of and last the mark
// that says that it is a copy: where a reshard dies between the two, whoever takes the copy up
// does that (Keep).
package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/retry"
)

// Job is a reshard to be done.
type Job struct {
	View  *ranking.View // of what there is
	To    ledger.Shards
	Owner string // whose it is, for others

	// Lease is how long consumers wait for a reshard that has died.
	Lease time.Duration
	// Level is how long is waited for consumers to bring all shards to the same positions.
	Level time.Duration

	Watch Watch

	page pageSize // that a call reads; zero: as much as Redis takes in a few milliseconds
}

// Watch receives how it goes on. None of them may be nil.
type Watch struct {
	Step   func(Step)
	Copied func(standings int64) // so far
	Note   func(line string)
}

// Step is what is being done.
type Step int

// Steps, in their order.
const (
	Leveling  Step = iota // consumers finish their batches
	Copying               // ingestion is held up
	Comparing             // the copy is read again
	Switching             // readers and consumers take the copy up
	Removing              // what was copied goes
)

// Plan is what there is to be copied.
type Plan struct {
	From, To  ledger.Shards
	Windows   int   // each once, on however many shards it is
	Standings int64 // a member in a window
}

// Result is what came of it.
type Result struct {
	Plan
	Switched bool
	// Unsure: the switch was sent, and no answer of it ever came.
	Unsure   bool
	Checksum uint64        // of every window, member and score, in any order
	Held     time.Duration // from asking consumers to pause to the switch
	Took     time.Duration
	Removed  int // keys of the old shards
}

// StandsError says that there are boards of the wanted number of shards already.
type StandsError struct {
	Prefix string
	Shards ledger.Shards
}

func (e *StandsError) Error() string {
	return fmt.Sprintf("under the prefix %q there are boards of %d shards already, beside those that are read: they have to be dropped first (consumer drop)", e.Prefix, int(e.Shards))
}

// ErrSame says that the prefix has the wanted number of shards.
var ErrSame = errors.New("it has that number of shards already")

// ErrHeld says that the reshard lost what it held, the lock or a hold: it was paused for longer
// than its lease, or Redis went back in time.
var ErrHeld = errors.New("the reshard's lease is over, or Redis has lost it")

// Survey counts what there is to be copied.
func Survey(ctx context.Context, v *ranking.View, to ledger.Shards) (*Plan, error) {
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

// Run does it. With an error the old shards are as they were, unless the result says that it
// has switched, or isn't sure.
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

// run is a reshard under way.
type run struct {
	*Job
	from, to []*ranking.Store
	result   *Result
	lease    *lease
	before   string // the record, as it is expected
	schema   string // of the copy
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
			r.forget(ctx) // what stays expires
		}
		if ctx.Err() == nil && going.Err() != nil {
			return context.Cause(going)
		}
		return err
	}
	r.result.Held = time.Since(asked)
	return r.after(ctx)
}

// prepare looks whether it can be done at all.
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
		if copied, err := s.Copied(ctx); err != nil {
			return err
		} else if !copied {
			return &StandsError{r.View.Prefix, r.To}
		}
	}
	return nil
}

// copied has the copy stand beside, complete and compared.
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

// betweenTries is how long is waited before Redis is asked once more.
var betweenTries = retry.Policy{First: 20 * time.Millisecond, Longest: time.Second}

// tries calls do until it succeeds or fails with what doesn't pass.
func tries(ctx context.Context, do func() error) error {
	return betweenTries.Do(ctx, func(err error) bool {
		return ctx.Err() == nil && !errors.Is(err, ErrHeld) && ranking.Classify(err) == ledger.Retry
	}, do)
}
