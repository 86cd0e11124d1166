package locate

// This file has the steps of the start table that write: a topic begins, a partition is added, a gap is
// skipped.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

// beginOnce resolves where a topic begins in the shards that don't have it. Only one worker of the process does
// this at a time, since it queries every partition.
func (l *Locator) beginOnce(ctx context.Context) error {
	select {
	case l.Starting <- struct{}{}:
		defer func() { <-l.Starting }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // the previous worker may have released the token because ctx ended
		return context.Cause(ctx)
	}
	states, err := l.States.Get(ctx)
	if err != nil {
		return err
	}
	if start.AllHaveTopic(states, l.Topic) {
		return ErrAgain // another worker has started the topic
	}
	// Another process may have started some shards since the decision.
	f, err := l.find(ctx)
	if err != nil {
		return err
	}
	decisions, err := start.DecideAll(f.states, f.facts, l.Terms.OnGap)
	if err != nil {
		return err
	}
	for shard, d := range decisions {
		switch d.Step {
		case start.Copy:
			err = l.copied(ctx, shard, f.states)
		case start.Recover:
			err = l.begin(ctx, shard, d.Step, f)
		case start.Begin: // the other shards copy this one once it is written
			if err := l.begin(ctx, shard, d.Step, f); err != nil {
				return err
			}
			return ErrAgain
		}
		if err != nil {
			return err
		}
	}
	return ErrAgain // continue from the positions that are written now
}

// skip moves a shard's ledger past a gap, and marks windows that start before it as partial in the origin.
func (l *Locator) skip(ctx context.Context, f *located, shard int, at ledger.Position) error {
	origin, err := l.originOf(ctx, f)
	if err != nil {
		return err
	}
	if !f.skipped {
		f.skipped = true
		l.Log.Warn("events are gone from the log: going on with what is left, as on_gap says; windows that start before are partial",
			zap.String("ledger", strings.Join(slices.Compact(shards.TextsOf(f.states, l.Field)), " ")), zap.Int64("log_start", f.facts.Log.Start), zap.Time("partial_before", time.UnixMilli(origin.Time)))
	}
	return l.set(ctx, shard, ledger.StartPosition{Partition: l.Partition, Found: f.states[shard].Ledger[l.Field], At: at, Origin: origin})
}

// join starts a partition that was added to an existing topic, at offset 0.
func (l *Locator) join(ctx context.Context, f *located, shard int) error {
	origin, err := l.originOf(ctx, f)
	if err != nil {
		return err
	}
	if !f.joined {
		f.joined = true
		l.Log.Info("the partition was added", zap.Int64("from", f.facts.Log.Start))
	}
	return l.set(ctx, shard, ledger.StartPosition{Partition: l.Partition, Beside: true, At: ledger.At(f.facts.Log.Start), Origin: origin})
}

// originOf returns the origin of a partition that is read from the log's start. It is the same for every shard.
func (l *Locator) originOf(ctx context.Context, f *located) (*ledger.Origin, error) {
	if f.origin == nil {
		origin, err := l.Resolver.originOf(ctx, f.facts.Log, l.Trail, f.states[0].Clock)
		if err != nil {
			return nil, err
		}
		f.origin = &origin
	}
	return f.origin, nil
}

// begin starts all partitions of the topic in one shard, where the configuration says; the other shards copy
// that. Until all shards have started, only the plan of a first start is committed.
func (l *Locator) begin(ctx context.Context, shard int, s start.Step, f *located) error {
	set, trails, err := l.resolveAll(ctx, s, f.partitions, f.committed, f.plans, f.states[shard].Clock)
	if err != nil {
		return err
	}
	if err := start.NotBefore(f.states, shard, set); err != nil {
		return err
	}
	offsets, at, partial := map[int]commits.Progress{}, map[int]int64{}, map[int]time.Time{}
	for i, b := range set {
		offsets[b.Partition.Number] = commits.Progress{Offset: b.At.From, Trail: trails[i]}
		at[b.Partition.Number] = b.At.From
		if b.Origin.Time > 0 {
			partial[b.Partition.Number] = time.UnixMilli(b.Origin.Time).UTC()
		}
	}
	log := l.Log
	if len(l.Shards) > 1 {
		log = log.With(zap.Int("shard", shard))
	}
	if s == start.Recover {
		log.Warn("Redis was lost: reading again from the first offset that can hold an event of a live window; windows that start before partial_before may lack events",
			zap.Any("offsets", at), zap.Any("partial_before", partial))
	} else {
		if err := l.plan(ctx, set, f.plans); err != nil {
			return err
		}
		log.Info("first start of the topic", zap.Any("offsets", at), zap.Any("partial_before", partial))
	}
	if err := l.set(ctx, shard, set...); err != nil {
		return err
	}
	if len(l.Shards) == 1 {
		return l.Commits.Now(ctx, offsets, l.Topic)
	}
	return nil
}

// plan commits the offsets at which a first start begins, before they are written to any shard.
func (l *Locator) plan(ctx context.Context, set []ledger.StartPosition, known map[int]ledger.Origin) error {
	plans := map[int]commits.Progress{}
	for i := range set {
		p, origin := set[i].Partition.Number, *set[i].Origin
		if was, ok := known[p]; !ok || was != origin {
			plans[p] = commits.Progress{Offset: origin.Offset, Plan: l.Terms.Where.Plan(origin)}
		}
	}
	if len(plans) == 0 {
		return nil
	}
	return l.Commits.Now(ctx, plans, l.Topic)
}

// copied starts a shard where the other shards started.
func (l *Locator) copied(ctx context.Context, shard int, states []ledger.State) error {
	set, err := start.CopyOf(states, l.Topic)
	if err != nil || len(set) == 0 { // the other shards no longer have the topic
		return err
	}
	return l.set(ctx, shard, set...)
}

// set writes the start positions of partitions to a shard.
func (l *Locator) set(ctx context.Context, shard int, all ...ledger.StartPosition) error {
	begun, err := l.Shards[shard].Begin(ctx, all)
	if err != nil {
		return err
	}
	switch begun {
	case ledger.Began:
		return nil
	case ledger.Orphaned:
		return fmt.Errorf("boards appeared without a ledger: %w", ErrAgain)
	case ledger.HeldUp:
		return shards.ErrHeld
	default:
		return ErrAgain
	}
}
