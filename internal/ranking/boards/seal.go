package boards

// Final windows: sealed on every shard, each by a call of its own.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Due is a window that takes no events any more and isn't final on all shards yet, of one revision.
type Due struct {
	ledger.Window
	Lateness time.Duration

	name     string
	listings []string // by shard, empty where it isn't listed
	final    []int64  // by shard, its revision; 0 where it isn't final
	listing  string   // of one that lists it
	least    int64    // the revision that it gets at least
}

// DueID tells a window that is due from others, and from itself once it was sealed and reopened.
type DueID struct {
	name     string
	revision int64
}

// ID is the window's, also once it is sealed on some of the shards.
func (d Due) ID() DueID { return DueID{d.name, max(1, d.least)} }

// Due are the windows to be sealed now, by their ends: all that a shard lists, but for those that were
// reopened for a while that isn't over. A window is over by both clocks: redis is a time that those of
// all shards have come to, and own the caller's. lateness is how long after its end a window takes
// events; false where it is none of a period that is kept. It goes through the listings page by page and
// waits for pause between two.
func (b *Boards) Due(ctx context.Context, redis, own time.Time, lateness func(ledger.Window) (time.Duration, bool), pause time.Duration) ([]Due, error) {
	byName := map[string]*Due{}
	over := min(redis.UnixMilli(), own.UnixMilli())
	err := b.eachListed(ctx, redis.UnixMilli(), over, lateness, pause, func(shard int, l listedWindow) {
		if !l.closed {
			return
		}
		d := byName[l.name]
		if d == nil {
			d = &Due{Window: l.Window, Lateness: l.lateness, name: l.name, listings: make([]string, len(b.shards)), final: make([]int64, len(b.shards)), listing: l.text}
			byName[l.name] = d
		}
		d.listings[shard], d.final[shard] = l.text, l.Final
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for name, d := range byName {
		d.least = slices.Max(d.final)
		// A shard that went back to before the window was reopened has it of the revision before.
		if slices.Min(d.final) < max(1, d.least) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	reopened := map[string]bool{}
	for _, s := range b.shards {
		records, err := s.SealRecords(ctx, names)
		if err != nil {
			return nil, err
		}
		for name, r := range records {
			byName[name].least = max(byName[name].least, r.Next())
			reopened[name] = reopened[name] || r.Reopened.After(redis)
		}
	}
	var all []Due
	for _, name := range names {
		if !reopened[name] {
			all = append(all, *byName[name])
		}
	}
	slices.SortStableFunc(all, func(x, y Due) int { return int(min(max(x.End-y.End, -1), 1)) })
	return all, nil
}

// Clocks are those of the shards whose clocks are furthest behind and furthest ahead.
func (b *Boards) Clocks(ctx context.Context) (first, last time.Time, err error) {
	for i, s := range b.shards {
		t, err := s.Now(ctx)
		if err != nil {
			return first, last, err
		}
		if i == 0 || t.Before(first) {
			first = t
		}
		if i == 0 || t.After(last) {
			last = t
		}
	}
	return first, last, nil
}

// Seals returns a number that every seal on any shard changes.
func (b *Boards) Seals(ctx context.Context) (int64, error) {
	all := int64(0)
	for _, s := range b.shards {
		n, err := s.Seals(ctx)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// Sealing is what came of Seal.
type Sealing struct {
	Final []string // final on every shard now
	Lost  []string // not sealed, as a shard has lost a key of theirs
}

// Seal makes windows final. before is, for every partition, the log's end as it was found after Due
// had answered. An error of a shard leaves the windows as they are there: they are due still, and
// what was sealed on others is so already. Those that pass by themselves are ranking.ErrHeld,
// ranking.ErrRebuilding and ranking.ErrBehind.
func (b *Boards) Seal(ctx context.Context, before map[ledger.Partition]int64, due []Due) (Sealing, error) {
	final, lost := make([]int, len(due)), make([]bool, len(due))
	var failed []error
	for i, s := range b.shards {
		windows := make([]ranking.Sealing, len(due))
		for n, d := range due {
			windows[n] = ranking.Sealing{Name: d.name, Listing: d.listings[i], As: d.listing, Lateness: d.Lateness, Least: d.least}
		}
		sealed, err := s.Seal(ctx, before, windows)
		if err != nil {
			failed = append(failed, err)
		}
		for n, w := range sealed {
			if w.Revision > 0 {
				final[n]++
			}
			lost[n] = lost[n] || w.Why == ranking.SealLost
		}
	}
	var all Sealing
	for n, d := range due {
		switch {
		case final[n] == len(b.shards):
			all.Final = append(all.Final, d.name)
		case lost[n]:
			all.Lost = append(all.Lost, d.name)
		}
	}
	return all, errors.Join(failed...)
}

// Unseal takes a window's seal back, and returns the revision that it had. Until a time nothing seals
// it by itself. It is ranking.ErrNotFinal where no shard has it sealed: called again after an error
// it finishes what it had begun.
func (b *Boards) Unseal(ctx context.Context, w ledger.Window, until time.Time, why string) (revision int64, err error) {
	for _, s := range b.shards {
		was, err := s.Unseal(ctx, w.Listing(), until, why)
		if err != nil && !errors.Is(err, ranking.ErrNotFinal) {
			return revision, err
		}
		revision = max(revision, was)
	}
	if revision == 0 {
		return 0, ranking.ErrNotFinal
	}
	return revision, nil
}
