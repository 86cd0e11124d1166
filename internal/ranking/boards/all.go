package boards

// Requests to all shards other than reads of boards: sums, unions, and the first error. Requests that page
// through whole listings go to one shard after another, so that together they cost Redis no more than one
// large shard.

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// States returns the state that each shard holds next to the boards, and the error of each shard's read.
func (b *Boards) States(ctx context.Context) ([]ledger.State, []error) {
	return ranking.StateEach(ctx, b.shards)
}

// State returns the shards' states merged into one (ledger.Together), or the first shard's error.
func (b *Boards) State(ctx context.Context) (ledger.State, error) {
	states, errs := b.States(ctx)
	if err := first(errs); err != nil {
		return ledger.State{}, err
	}
	return ledger.Together(states), nil
}

// first returns the first error, or nil.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Answers checks that all shards answer a worker's request for its position. It returns the first shard's
// error.
func (b *Boards) Answers(ctx context.Context, partition ledger.Partition) error {
	_, errs := ranking.PositionEach(ctx, b.shards, partition)
	return first(errs)
}

// Now returns the time of shard 0's server. Readers use it to find the current window. Which windows of a
// shard are live is decided by the clock of that shard's server.
func (b *Boards) Now(ctx context.Context) (time.Time, error) { return b.shards[0].Now(ctx) }

// SettledBorders returns the settled borders of calendar windows, which are the same on all shards.
func (b *Boards) SettledBorders(ctx context.Context) (ranking.SettledBorders, error) {
	return b.shards[0].SettledBorders(ctx)
}

// CheckSchemas returns an error if a shard's schema differs from the configuration's. A shard without a
// schema does not differ.
func (b *Boards) CheckSchemas(states []ledger.State) error {
	for i, s := range b.shards {
		if err := s.CheckSchema(states[i].Schema); err != nil {
			return err
		}
	}
	return nil
}

// Extend adds the configured periods that a shard's schema lacks, as ranking.Store.Extend does, and returns
// them. It updates the schemas in states.
func (b *Boards) Extend(ctx context.Context, states []ledger.State, maxFuture time.Duration) (added []ledger.Added, err error) {
	for i, s := range b.shards {
		some, err := s.Extend(ctx, &states[i], maxFuture)
		if err != nil {
			return added, err
		}
		if len(some) > 0 {
			added = some
		}
	}
	return added, nil
}

// Adds returns the periods that Extend would add, and updates the schemas in states like Extend. It writes
// nothing to Redis.
func (b *Boards) Adds(states []ledger.State, maxFuture time.Duration) (added []ledger.Added) {
	for i, s := range b.shards {
		if some := s.Adds(&states[i], maxFuture); len(some) > 0 {
			added, states[i].Schema = some, s.Schema()
		}
	}
	return added
}

// Try checks that every master keeps what it is given, and that this user may run all that the
// scripts run, in every shard.
func (b *Boards) Try(ctx context.Context, assumeNoEviction bool) error {
	if err := b.shards[0].TryEviction(ctx, assumeNoEviction); err != nil {
		return err
	}
	return b.TryCommands(ctx)
}

// triedAtOnce is the number of shards that are checked concurrently.
const triedAtOnce = 16

// TryCommands checks that the Redis user may run every command of the scripts, on every shard.
func (b *Boards) TryCommands(ctx context.Context) error {
	var all errgroup.Group
	all.SetLimit(triedAtOnce)
	errs := make([]error, len(b.shards))
	for i, s := range b.shards {
		all.Go(func() error {
			errs[i] = s.TryCommands(ctx)
			return nil
		})
	}
	_ = all.Wait() // the functions return no error
	return first(errs)
}

// Trusted reports whether a server was accepted without reporting its maxmemory-policy.
func (b *Boards) Trusted() bool { return b.shards[0].Trusted() }

// Listed is a window that shards list.
type Listed struct {
	ledger.Window
	shards []int // numbers of the shards that list it
}

// ListedWindows returns the windows that some shard lists of the boards that match, each once and in no
// order. See ranking.Store.ListedWindows.
func (b *Boards) ListedWindows(ctx context.Context, match func(board string) bool) ([]Listed, error) {
	var all []Listed
	known := map[string]int{}
	for i, s := range b.shards {
		windows, err := s.ListedWindows(ctx, match)
		if err != nil {
			return nil, err
		}
		for _, w := range windows {
			at, ok := known[w.Listing()]
			if !ok {
				at = len(all)
				known[w.Listing()] = at
				all = append(all, Listed{Window: w})
			}
			all[at].shards = append(all[at].shards, i)
		}
	}
	return all, nil
}

// MembersOf returns the number of members of each window, in order; 0 if the key is gone on a shard that
// lists it. It costs Redis one short command per window and shard.
func (b *Boards) MembersOf(ctx context.Context, windows []Listed) ([]int64, error) {
	all, gone := make([]int64, len(windows)), make([]bool, len(windows))
	for i, s := range b.shards {
		var some []ledger.Window
		var at []int
		for n, w := range windows {
			if slices.Contains(w.shards, i) {
				some, at = append(some, w.Window), append(at, n)
			}
		}
		counts, err := s.MembersOf(ctx, some)
		if err != nil {
			return nil, err
		}
		for n, count := range counts {
			all[at[n]] += count
			gone[at[n]] = gone[at[n]] || count == 0
		}
	}
	for n := range all {
		if gone[n] {
			all[n] = 0
		}
	}
	return all, nil
}

// Windows returns the number of windows listed by the shard that lists most; max_windows limits it.
func (b *Boards) Windows(ctx context.Context) (int64, error) {
	most := int64(0)
	for _, s := range b.shards {
		n, err := s.Windows(ctx)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

// Count returns the number of boards that have a listed window. It pages through the listings and waits for
// pause between pages, to keep the load on Redis low.
func (b *Boards) Count(ctx context.Context, pause time.Duration) (int, error) {
	all := map[uint64]struct{}{}
	for _, s := range b.shards {
		if err := s.AddBoards(ctx, pause, all); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// Largest returns the maximum of ranking.Store.Largest over all shards.
func (b *Boards) Largest(ctx context.Context, lateness func(period string) time.Duration, pause time.Duration) (map[string]int64, error) {
	all := map[string]int64{}
	for _, s := range b.shards {
		largest, err := s.Largest(ctx, lateness, pause)
		if err != nil {
			return nil, err
		}
		for period, points := range largest {
			all[period] = max(all[period], points)
		}
	}
	return all, nil
}

// Lost names the listed windows whose keys are gone, in order. If there are several shards it adds the
// shard, and names a window once per shard.
func (b *Boards) Lost(ctx context.Context) ([]string, error) {
	var all []string
	for _, s := range b.shards {
		lost, err := s.Lost(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range lost {
			if shard, of := s.Shard(); of > 1 {
				name += " (" + ranking.ShardName(shard, of, s.Addr()) + ")"
			}
			all = append(all, name)
		}
	}
	return all, nil
}

// OtherRules returns the windows that were written by another rule than their boards have now, each once.
func (b *Boards) OtherRules(ctx context.Context) ([]*ranking.RuleError, error) {
	var all []*ranking.RuleError
	for _, s := range b.shards {
		others, err := s.OtherRules(ctx)
		if err != nil {
			return nil, err
		}
		for _, other := range others {
			if !slices.ContainsFunc(all, func(e *ranking.RuleError) bool { return *e == *other }) {
				all = append(all, other)
			}
		}
	}
	return all, nil
}

// Retire removes the listings of windows that expired more than two days ago, on every shard, and returns
// how many it removed. If a shard fails, Retire continues with the others. A *ranking.ClockError is
// returned after all work is done, and is not a failure.
func (b *Boards) Retire(ctx context.Context) (int, error) {
	dropped := 0
	var failed, clock error
	for _, s := range b.shards {
		n, err := s.Retire(ctx)
		dropped += n
		if _, ok := errors.AsType[*ranking.ClockError](err); ok {
			clock = err
		} else if err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return dropped, failed
	}
	return dropped, clock
}
