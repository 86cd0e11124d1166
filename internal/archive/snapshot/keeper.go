package snapshot

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/retry"
)

// Keeper takes snapshots of a prefix, one an interval, and retires old ones. One process at a time does so
// (archive/lease). Where two do for a moment, as one was paused, that does no harm: each shard is read
// for one snapshot at a time, no two snapshots share a file, and whichever becomes whole is exact.
//
//	       ┌── interval since the newest began ──┐
//	waits ─┴▶ takes ─▶ retires ─▶ waits          │
//	            └ fails ─▶ waits, longer each time ─▶ takes
type Keeper struct {
	Store    Store
	Shards   []*ranking.Store
	Interval time.Duration
	Keep     int
	Pace     Pace
	// Seen is called with what there is of the prefix, the newest first, each time that is looked at.
	Seen func([]Manifest)
	// Failed is called with every failure, and what it was that failed: list, take or retire.
	Failed func(what string, err error)
	Log    *zap.Logger
}

// again is how long after a failure the next try is made.
var again = retry.Policy{First: 5 * time.Second, Longest: 5 * time.Minute} // tests wait for less

// Run returns when the context ends, and nothing is written any more.
func (k *Keeper) Run(ctx context.Context) {
	pauses := again.Start()
	for ctx.Err() == nil {
		wait, err := k.turn(ctx)
		if err != nil {
			wait, _ = pauses.Pause()
		} else {
			pauses.Reset()
		}
		_ = retry.Sleep(ctx, wait) // the loop looks at the context
	}
}

// turn takes a snapshot if one is due, and returns how long it is until the next one is.
func (k *Keeper) turn(ctx context.Context) (time.Duration, error) {
	all, err := k.List(ctx)
	if err != nil {
		k.failed(ctx, "list", err)
		return 0, err
	}
	if wait := k.wait(all, time.Now()); wait > 0 {
		return wait, nil
	}
	from := time.Now()
	m, err := k.Store.Take(ctx, k.Shards, k.Pace)
	if err != nil {
		k.failed(ctx, "take", err)
		return 0, err
	}
	c := m.Counts()
	k.Log.Info("a snapshot was taken", zap.String("name", m.Name), zap.Int64("rows", c.Rows), zap.Int64("windows", c.Windows),
		zap.Int64("bytes", m.Bytes()), zap.Duration("took", time.Since(from)))
	removed, err := k.Store.Retire(ctx, m.Prefix, k.Keep, time.Now())
	if len(removed) > 0 {
		k.Log.Info("old snapshots were removed", zap.Strings("names", removed))
	}
	if err != nil {
		k.failed(ctx, "retire", err) // the next time does it
	}
	_, _ = k.List(ctx) // the next turn reports what goes wrong
	return max(k.Interval-time.Since(from), 0), nil
}

// List is what there is of the prefix, the newest first. Snapshots that can't be read leave the others.
func (k *Keeper) List(ctx context.Context) (own []Manifest, err error) {
	all, err := k.Store.List(ctx)
	for i := range all {
		if all[i].Prefix == k.Shards[0].Prefix() {
			own = append(own, all[i])
		}
	}
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	if err != nil {
		k.Log.Warn("some of what is kept is no whole snapshot", zap.Error(err))
	}
	k.Seen(own)
	return own, nil
}

// wait is how long it is until the next one is due: none where there is none of this schema, or the clock
// has gone back to before the newest.
func (k *Keeper) wait(own []Manifest, now time.Time) time.Duration {
	for i := range own {
		if own[i].Schema != k.Shards[0].Schema() || len(own[i].Files) != len(k.Shards) || own[i].Began.After(now) {
			continue
		}
		return max(own[i].Began.Add(k.Interval).Sub(now), 0)
	}
	return 0
}

func (k *Keeper) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // it isn't the leader any more, or the process ends
	}
	k.Failed(what, err)
	text := map[string]string{
		"list":   "can't look which snapshots there are; trying again",
		"take":   "couldn't take a snapshot; the ones before are as they were, and it is tried again",
		"retire": "couldn't remove old snapshots; the next time does",
	}[what]
	k.Log.Warn(text, zap.Error(err))
}
