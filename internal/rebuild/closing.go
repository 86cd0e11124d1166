package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Coming close to a ledger that moves: rounds, each up to where the live ledger stands as
// it begins, get shorter and shorter as long as reading is faster than what comes. Once
// one is short, ingestion is held and what is left is about as short.

// reading shows how far the rounds have come while they go on.
func (a *attempt) reading(ctx context.Context) error {
	if a.Watch.Reading != nil {
		begun, until := cloned(a.begun), cloned(a.until)
		total := int64(0)
		for field, at := range begun {
			total += until[field] - at
		}
		ended := a.Watch.Reading(total, func() int64 {
			n := int64(0)
			for field, at := range begun {
				n += min(a.reads.Through(field, at), until[field]-at)
			}
			return n
		})
		defer ended()
	}
	return a.close(ctx)
}

// outrun is how many rounds that don't get short are waited for in silence.
const outrun = 20

// near is how long the nth round may take that is followed by the hold. Where even short
// rounds take their time, on a Redis or a Kafka that is slow to answer, it is tried with
// what there is: under the hold nothing is added.
func (a *attempt) near(n int) time.Duration {
	if n > outrun {
		return a.MaxHold / 2
	}
	return min(a.MaxHold/4, 300*time.Millisecond)
}

// close goes round by round until one was short.
func (a *attempt) close(ctx context.Context) error {
	for n := 1; ; n++ {
		began := time.Now()
		limits, err := a.limits(ctx, false)
		if err != nil {
			return err
		}
		if err := a.reads.To(ctx, limits); err != nil {
			return err
		}
		if time.Since(began) <= a.near(n) {
			return nil
		}
		if n%outrun == 0 {
			a.Watch.notef("the consumers are about as fast as this rebuild, or servers are slow to answer: %d rounds, and it isn't close yet", n)
		}
	}
}

// limits are where partitions are to be read to now: where the live ledger stands. What it
// has and the shadow hasn't, as a partition that was added, begins now.
//
// To read into the middle of a sweep is to read all of its events, and to read them again
// once the sweep goes on. So a sweep is left for later unless it stands still, as one whose
// worker is halted or gone, or is held (exact).
func (a *attempt) limits(ctx context.Context, exact bool) (map[string]ledger.Position, error) {
	live, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	last := a.last
	a.last = live.Ledger
	limits := map[string]ledger.Position{}
	if a.orphaned {
		if len(live.Ledger) > 0 {
			return nil, fmt.Errorf("the ledger that was lost is there again: %w", ingest.ErrWentBack)
		}
		for field, end := range a.until {
			limits[field] = ledger.At(end)
		}
		return limits, nil
	}
	if err := a.take(ctx, live); err != nil {
		return nil, err
	}
	// A hold that wasn't in time may have left a piece whose answer never came.
	if err := a.reads.Look(ctx); err != nil {
		return nil, err
	}
	for field, text := range live.Ledger {
		at, err := ledger.Counted(text)
		if err != nil {
			return nil, fmt.Errorf("the ledger of %s: %w", field, err)
		}
		stands := a.reads.Position(field)
		if !ingest.Leads(stands, at) {
			return nil, fmt.Errorf("%s stands at %v, and the rebuild at %v: %w", field, at, stands, ingest.ErrWentBack)
		}
		if at.Sweeping() && !exact && last[field] != text {
			if at = ledger.At(at.From); !ingest.Leads(stands, at) {
				continue // it is in that sweep already
			}
		}
		limits[field] = at
	}
	return limits, nil
}

// take begins the partitions that the live ledger has had since.
func (a *attempt) take(ctx context.Context, live ledger.State) error {
	for field := range a.begun {
		if _, ok := live.Ledger[field]; !ok {
			return fmt.Errorf("%s is gone from the live ledger: %w", field, ingest.ErrWentBack)
		}
	}
	var added []string
	for field := range live.Ledger {
		if _, ok := a.begun[field]; !ok {
			added = append(added, field)
		}
	}
	if len(added) == 0 {
		return nil
	}
	slices.Sort(added)
	from := a.From
	if from.Offsets != nil { // which was written before these were there
		from = ingest.ReplayFrom{From: ingest.FromEarliest}
	}
	starts, err := a.begin(ctx, from, live, added)
	if err != nil {
		return err
	}
	a.result.Plan.Starts = append(a.result.Plan.Starts, starts...)
	return nil
}

const (
	mostDifferent = 1 << 20 // members that are remembered to differ: 100 MB or so
	comparePause  = time.Millisecond
)

// compare pages through the boards and what takes their place. What changes meanwhile is
// asked for again under the hold.
func (a *attempt) compare(ctx context.Context) error {
	a.Watch.notef("comparing the boards with what takes their place")
	var err error
	if a.compared, err = a.Rebuild.Compare(ctx, a.Choice, mostDifferent, comparePause, nil); err != nil {
		return err
	}
	if err := a.close(ctx); err != nil {
		return err
	}
	return a.compared.Update(ctx) // what is left is for the hold
}

// differences takes what the comparison came to.
func (a *attempt) differences() (err error) {
	if a.compared == nil {
		return nil
	}
	a.result.Differ, a.result.Exact = a.compared.Windows(), a.compared.Exact()
	a.result.Differences, err = a.compared.Differences(a.List)
	return err
}

// finish holds ingestion, reads what is left, and swaps; again until that works.
func (a *attempt) finish(ctx context.Context) error {
	for n := 1; ; n++ {
		done, err := a.held(ctx)
		if done || err != nil {
			return err
		}
		if n%5 == 0 {
			a.Watch.notef("ingestion was held %d times for up to %v, and the rest wasn't read by then: trying again", n, a.MaxHold)
		}
		if err := a.close(ctx); err != nil {
			return err
		}
		if a.compared != nil { // else each hold has more to ask for than the one before
			if err := a.compared.Update(ctx); err != nil {
				return err
			}
		}
	}
}

// held is one hold. It reports false where it was let go of without a swap.
func (a *attempt) held(ctx context.Context) (done bool, err error) {
	began := time.Now()
	if err := ranking.Retry(ctx, func() error { return a.Hold(ctx, a.MaxHold) }); err != nil {
		if errors.Is(err, ranking.ErrUnheld) {
			return false, sleep(ctx, 100*time.Millisecond)
		}
		return false, err
	}
	a.result.Holds++
	defer func() {
		if !a.result.Swapped {
			// Where this fails the hold lapses.
			_ = a.Release(context.WithoutCancel(ctx))
		}
	}()
	inTime, cancel := context.WithDeadline(ctx, began.Add(a.MaxHold))
	defer cancel()
	limits, err := a.limits(inTime, true)
	if err == nil {
		err = a.reads.To(inTime, limits)
	}
	if err == nil && a.compared != nil {
		err = a.compared.Update(inTime)
	}
	if err == nil && a.DryRun {
		if _, err = a.plan(inTime, a.result.Plan.Starts); err == nil {
			err = inTime.Err() // what came after it may be of another moment
		}
	}
	switch {
	case err != nil && inTime.Err() != nil && ctx.Err() == nil:
		return false, nil // not in time
	case err != nil:
		return false, err
	case a.DryRun:
		_ = a.Release(ctx) // what differs is known, and to sort it takes a while
		a.result.Held = time.Since(began)
		return true, a.differences()
	}
	if done, err = a.swap(ctx, began); done && err == nil {
		err = a.differences()
	}
	return done, err
}

// swap is tried until its outcome is known.
func (a *attempt) swap(ctx context.Context, began time.Time) (done bool, err error) {
	var plan *ranking.Plan
	// Told to stop, it still asks for a while: else nobody would know whether it had swapped.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(leaveTime, cancel) })()
	err = ranking.Retry(asking, func() (err error) { plan, err = a.Swap(asking, a.Choice); return err })
	a.result.Unsure = a.Unsure()
	_, moved := errors.AsType[*ranking.MovedError](err)
	switch {
	case err == nil:
		a.result.Held, a.result.Swapped = time.Since(began), true
		a.result.Plan.Plan = plan
		return true, nil
	case moved, errors.Is(err, ranking.ErrUnheld):
		return false, nil
	}
	return false, err
}

func cloned(m map[string]int64) map[string]int64 {
	all := make(map[string]int64, len(m))
	for k, v := range m {
		all[k] = v
	}
	return all
}
