package boards

// Final windows: they are sealed on every shard, by one call per shard.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Due is a window that accepts no more events, and is not yet final with one revision on all shards.
type Due struct {
	ledger.Window
	Lateness time.Duration

	name     string
	listings []string // by shard, empty if the shard does not list it
	final    []int64  // by shard, its revision; 0 if it is not final
	listing  string   // the listing on one shard that lists it
	least    int64    // the lowest revision that a seal gives it
}

// DueID identifies a seal that is due: a window, and the revision that it is about to get.
type DueID struct {
	name     string
	revision int64
}

// ID identifies the window, including when only some of the shards have sealed it.
func (d Due) ID() DueID { return DueID{d.name, max(1, d.least)} }

// Due returns the windows to seal now, ordered by end: all listed windows, except those that were reopened
// until a later time. A window is over only if both clocks agree: redis is a time that the clocks of all
// shards have reached, and own is the time of the caller. lateness returns how long after its end a window accepts
// events, and false if its period is not kept. Due pages through the listings and waits for pause between
// pages.
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
		// A shard that was rolled back to before the window was reopened still has the previous revision.
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

// Clocks returns the times of the shards whose clocks are furthest behind and furthest ahead.
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

// Seals returns a number that changes with every seal on any shard.
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

// Sealing is the result of Seal.
type Sealing struct {
	Final []string // now final on every shard
	Lost  []string // not sealed, because a shard has lost one of the window's keys
}

// Seal makes windows final. before is the log end of every partition as found after Due returned. If a
// shard fails, its windows are unchanged and still due; windows already sealed on other shards stay sealed.
// The errors ranking.ErrHeld, ranking.ErrRebuilding and ranking.ErrBehind are transient.
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

// Unseal reverts a window's seal on all shards, and returns the revision that it had. Due does not return
// the window until the time until. Unseal returns ranking.ErrNotFinal if no shard has the window sealed.
// After an error it can be called again to finish.
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
