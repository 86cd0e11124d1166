// Package rebuild folds the log into a shadow of the live boards, beside the consumers,
// and swaps the two where both hold the very same events.
//
//	lock ─▶ begin ─▶ read, round by round ─▶ hold ─▶ read the rest ─▶ swap ─▶ unlink
//	 ▲                ▲                        │
//	 │ went back      └─── release ◀───────────┘ not there in time, or the ledger moved
//	 └─── anew
//
// A rebuild is the consumer's own worker without a group (ingest.Replay), writing through
// the same script into keys of its own (ranking.Rebuild). It never goes past the live
// ledger, since what is in can't be taken out again; nothing is renamed unless both ledgers
// are equal, in the call that renames. All that it has in Redis ends by a lease: killed at
// any point, it leaves the live boards as they are.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Job is a rebuild to be done. Every field but those of Watch is set.
type Job struct {
	Live *ranking.Store
	// Replay makes a replay into a shadow.
	Replay func(shadow *ranking.Store) (*ingest.Replay, error)
	From   ingest.ReplayFrom
	Choice ranking.Choice
	Owner  string // others are told who rebuilds

	MaxHold time.Duration // ingestion is held for no longer at a time
	Lease   time.Duration // what the rebuild has in Redis lives so long without it

	DryRun bool // everything but the swap
	// Compare has the boards compared with what takes their place, and so many standings
	// that differ listed.
	Compare bool
	List    int

	Watch Watch
}

// Watch is told how a rebuild goes on; what is nil isn't.
type Watch struct {
	// Planned is told before anything is read.
	Planned func(*Plan)
	// Reading is told when reading begins: how many offsets there are, and how to learn
	// how many are in. It ends with what it returns.
	Reading func(total int64, through func() int64) (ended func())
	Note    func(string)
}

func (w *Watch) notef(format string, args ...any) {
	if w.Note != nil {
		w.Note(fmt.Sprintf(format, args...))
	}
}

// Plan is what a rebuild is about to do.
type Plan struct {
	*ranking.Plan
	Starts []ingest.ReplayStart
	Until  map[string]int64 // by field, where the live ledger stood at first
}

// Replaces is the number of windows that are replaced, or dropped.
func (p *Plan) Replaces() int {
	n := 0
	for i := range p.Windows {
		if f := p.Windows[i].Fate; f == ranking.Replaced || f == ranking.Dropped {
			n++
		}
	}
	return n
}

// Result is what came of a rebuild.
type Result struct {
	Plan    *Plan // the last: what was done, or would have been
	Swapped bool
	Unsure  bool          // it may have swapped, or the swap died midway: Redis never said
	Held    time.Duration // how long ingestion stood still, of the hold that led to the swap
	Holds   int           // how often it was held
	Records int64         // that were read
	Took    time.Duration
	// Differ are the windows that were compared, and Differences the first standings that
	// differ: A is the live one, B the rebuilt. Exact is false where there were more than
	// could be remembered.
	Differ      []ranking.WindowDifference
	Differences []ranking.Difference
	Exact       bool
}

// ErrNothing says that there is nothing to rebuild.
var ErrNothing = errors.New("nothing was counted here yet: a consumer begins by itself")

// tries is how often a rebuild begins anew by itself.
const tries = 3

// Run rebuilds. Whatever it returns, the hold and the lock are let go of, and what is left
// in Redis expires by itself if it couldn't be removed. An error says that nothing was
// changed, unless Result.Swapped or Result.Unsure says otherwise.
func (j *Job) Run(ctx context.Context) (*Result, error) {
	began := time.Now()
	for try := 1; ; try++ {
		r, err := j.attempt(ctx, began, try)
		r.Took = time.Since(began)
		if try == tries || !errors.Is(err, ingest.ErrWentBack) && !errors.Is(err, ingest.ErrLogMoved) {
			return r, err
		}
		j.Watch.notef("beginning anew: %v", err)
	}
}

// attempt is one rebuild, from the lock to its release.
type attempt struct {
	*Job
	*ranking.Rebuild
	reads    *ingest.Replay
	result   *Result
	begun    map[string]int64 // by field, the first offset that is read
	orphaned bool             // the live ledger is empty: the group's offsets stand for it
	until    map[string]int64
	last     map[string]string // the live ledger as of the round before
	compared *ranking.Comparison
}

func (j *Job) attempt(ctx context.Context, run time.Time, try int) (result *Result, err error) {
	a := &attempt{Job: j, result: &Result{}, begun: map[string]int64{}, until: map[string]int64{}}
	live, err := a.state(ctx)
	if err == nil {
		err = j.Live.CheckSchema(live.Schema)
	}
	if err == nil && len(live.Ledger) == 0 && live.Windows == 0 {
		err = ErrNothing
	}
	if err != nil {
		return a.result, err
	}
	if a.Rebuild, err = j.lock(ctx, run, try == 1); err != nil {
		return a.result, j.Live.Full(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	renewed := a.renew(ctx, cancel)
	err = a.run(ctx, live)
	if a.reads != nil {
		a.result.Records = a.reads.Stats().Records.Load()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	err = j.Live.Full(context.WithoutCancel(ctx), err) // before what it takes is removed
	// What is left is removed while the lease goes on, else others could begin in it.
	a.leave(ctx)
	cancel(nil)
	<-renewed
	return a.result, err
}

// run reads the log and swaps.
func (a *attempt) run(ctx context.Context, live ledger.State) error {
	var err error
	if a.reads, err = a.Replay(a.Shadow()); err != nil {
		return err
	}
	fields := slices.Sorted(maps.Keys(live.Ledger))
	if a.orphaned = len(fields) == 0; a.orphaned {
		// Nothing says how far the boards had come, and any offset is right for them, since
		// all are replaced and consumers go on from there. By the group's offsets no dead
		// letter goes missing.
		if fields, err = a.reads.Fields(ctx); err != nil {
			return err
		}
		committed, err := a.reads.Committed(ctx, fields)
		if err != nil {
			return err
		}
		for field, offset := range committed {
			live.Ledger[field] = ledger.At(offset).String()
		}
	}
	starts, err := a.begin(ctx, a.From, live, fields)
	if err != nil {
		return err
	}
	plan, err := a.plan(ctx, starts)
	if err != nil {
		return err
	}
	if a.Watch.Planned != nil {
		a.Watch.Planned(plan)
	}
	if len(plan.Refused) > 0 {
		return &ranking.RefusedError{Reasons: plan.Refused}
	}
	if plan.idle() && len(a.Choice.Boards) == 0 {
		return nil
	}
	if unknown := plan.unknown(a.Choice.Boards); len(unknown) > 0 {
		a.Watch.notef("no window is listed of %s: it is looked for in the log", strings.Join(unknown, ", "))
	}
	err = a.reading(ctx)
	if err == nil {
		err = a.known(ctx)
	}
	if err == nil && a.Job.Compare {
		err = a.compare(ctx)
	}
	if err != nil {
		return err
	}
	return a.finish(ctx)
}

// unknown are those boards of which there is no window.
func (p *Plan) unknown(boards []string) []string {
	return slices.DeleteFunc(slices.Clone(boards), func(board string) bool {
		return slices.ContainsFunc(p.Windows, func(w ranking.Planned) bool { return w.Board == board })
	})
}

// known refuses a board that neither is listed nor was found in the log: its name may be
// mistyped, and to go on would be to rebuild nothing.
func (a *attempt) known(ctx context.Context) error {
	if len(a.Choice.Boards) == 0 {
		return nil
	}
	p, err := a.plan(ctx, a.result.Plan.Starts)
	if err != nil {
		return err
	}
	if unknown := p.unknown(a.Choice.Boards); len(unknown) > 0 {
		return fmt.Errorf("no window is of the board %s, neither listed nor in the log: nothing was changed", strings.Join(unknown, ", "))
	}
	return nil
}

// idle reports whether there is nothing to do: no window to replace, and no ledger to
// settle. What the log alone knows isn't known yet, but for a window that nobody counted
// in the log is read by those who ask for its board. Where no window is known at all, the
// listing may be what was lost.
func (p *Plan) idle() bool {
	return p.Replaces() == 0 && len(p.Windows) > 0 && !p.Orphaned && len(p.Torn) == 0
}

// begin resolves where partitions begin and writes it into the shadow.
func (a *attempt) begin(ctx context.Context, from ingest.ReplayFrom, live ledger.State, fields []string) ([]ingest.ReplayStart, error) {
	starts, err := a.reads.Starts(ctx, from, live, fields)
	if err != nil {
		return nil, err
	}
	var all []ledger.Beginning
	for _, s := range starts {
		b, err := s.Beginning()
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	if err := a.reads.Begin(ctx, all...); err != nil {
		return nil, err
	}
	for _, s := range starts {
		a.begun[s.Field] = s.At
		if text, ok := live.Ledger[s.Field]; ok {
			at, err := ledger.Counted(text)
			if err != nil {
				return nil, fmt.Errorf("the ledger of %s: %w", s.Field, err)
			}
			a.until[s.Field] = at.From
		}
	}
	return starts, nil
}

func (a *attempt) plan(ctx context.Context, starts []ingest.ReplayStart) (*Plan, error) {
	var of *ranking.Plan
	err := ranking.Retry(ctx, func() (err error) { of, err = a.Plan(ctx, a.Choice); return err })
	if err != nil {
		return nil, err
	}
	a.result.Plan = &Plan{Plan: of, Starts: starts, Until: maps.Clone(a.until)}
	return a.result.Plan, nil
}

// state reads the live ledger, and waits until Redis answers.
func (a *attempt) state(ctx context.Context) (s ledger.State, err error) {
	err = ranking.Retry(ctx, func() (err error) { s, err = a.Live.State(ctx); return err })
	return s, err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
