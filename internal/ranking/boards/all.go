package boards

// What is asked of all shards besides boards: sums, unions, and the first error. What goes through
// whole listings asks one shard after another, so that all of them cost Redis what one of that
// size would.

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// States is what each shard holds beside the boards, and why that isn't known.
func (b *Boards) States(ctx context.Context) ([]ledger.State, []error) {
	return ranking.StateEach(ctx, b.shards)
}

// State is what all shards hold beside the boards (ledger.Together). The error is that of the
// first shard that has one.
func (b *Boards) State(ctx context.Context) (ledger.State, error) {
	states, errs := b.States(ctx)
	if err := first(errs); err != nil {
		return ledger.State{}, err
	}
	return ledger.Together(states), nil
}

// first is the first error there is.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Answers looks whether all shards answer workers, by what workers ask. The error is that of the
// first that doesn't.
func (b *Boards) Answers(ctx context.Context, partition ledger.Partition) error {
	_, errs := ranking.PositionEach(ctx, b.shards, partition)
	return first(errs)
}

// Now is the clock of the server of shard 0. By it a reader says which window is the current one;
// which windows a shard's live ones are its own server's clock decides.
func (b *Boards) Now(ctx context.Context) (time.Time, error) { return b.shards[0].Now(ctx) }

// SettledBorders are where windows of calendars start and end. They are the same on all shards.
func (b *Boards) SettledBorders(ctx context.Context) (ranking.SettledBorders, error) {
	return b.shards[0].SettledBorders(ctx)
}

// CheckSchemas says what differs between the schema found in a shard and the configuration's; of
// a shard that has none yet nothing.
func (b *Boards) CheckSchemas(states []ledger.State) error {
	for i, s := range b.shards {
		if err := s.CheckSchema(states[i].Schema); err != nil {
			return err
		}
	}
	return nil
}

// Extend adds the periods that the configuration has more than the schema of any shard, as
// ranking.Store.Extend does, and returns them. The states' schemas are brought up to date.
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

// Adds returns the periods that Extend would add, and writes nothing in Redis. The states' schemas are
// then as Extend leaves them.
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

// triedAtOnce is how many shards are tried at a time.
const triedAtOnce = 16

// TryCommands checks that this user may run all that the scripts run, in every shard.
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
	_ = all.Wait() // none fails
	return first(errs)
}

// Trusted reports whether a server was taken without reporting its maxmemory-policy.
func (b *Boards) Trusted() bool { return b.shards[0].Trusted() }

// Listed is a window that shards list.
type Listed struct {
	ledger.Window
	shards []int // which
}

// ListedWindows are the windows that a shard lists of the boards that match, in no order: as
// ranking.Store.ListedWindows, each once.
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

// MembersOf is how many members each of these windows has, in their order; 0 where the key is gone
// of a shard that lists it. It costs Redis one short command a window and shard.
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

// Windows is how many windows a shard lists: that of the one that lists most, which max_windows
// is a limit of.
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

// Count is how many boards have a window that is listed. It goes through the listings page by page
// and waits for pause between two, so that Redis hardly notices.
func (b *Boards) Count(ctx context.Context, pause time.Duration) (int, error) {
	all := map[uint64]struct{}{}
	for _, s := range b.shards {
		if err := s.AddBoards(ctx, pause, all); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// Largest is as ranking.Store.Largest, over all shards.
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

// Lost names the windows that are listed and whose keys are gone, in order; of several shards
// with the shard, and once for each.
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

// OtherRules says which windows were written by another rule than their boards have, each once.
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

// Retire drops the listings of windows that have been over for two days, of every shard, and
// returns how many. Where one fails the others go on. A *ranking.ClockError is returned once
// everything is done, and is no failure.
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
