package locate

// This file predicts where the consumer would start, for `consumer check`. Nothing here writes.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Why is the reason for which a partition would start where it does: a line of the start table.
type Why string

// The lines of the start table.
const (
	FromLedger Why = "ledger"      // the ledger has a position
	OverGap    Why = "gap"         // the ledger has a position before the log's start, and on_gap allows to continue
	Added      Why = "added"       // the partition was added to an existing topic
	First      Why = "first_start" // neither Redis nor the group's offsets have the topic
	Lost       Why = "redis_lost"  // the group has read the topic, and Redis has nothing of it
	Halts      Why = "halt"        // the partition would halt: its start can't be determined
)

// Outlook is where a partition would start now.
type Outlook struct {
	Why Why
	At  int64 // the offset; unset with Halts
	// Partial is the time, in Unix ms, before which starting windows are incomplete; 0 means none. It doesn't
	// contain what the ledger's origin already records.
	Partial int64
	Halt    *health.Halt // set with Halts
}

// Outlook evaluates the start table for every partition of the topic, as workers would if they started now, and
// writes nothing. states are those of all shards. For each partition it reports the first shard that would not
// just continue from its ledger. It returns an error only if a query fails.
func (r *Resolver) Outlook(ctx context.Context, shards shards.All, states []ledger.State, logs []kafkaconn.Log, committed map[int]kafkaconn.Commit) ([]Outlook, error) {
	committed, plans := r.Terms.Where.Plans(committed)
	all := make([]Outlook, len(logs))
	if err := shards.CheckSchema(states); err != nil {
		for p := range all {
			all[p] = Outlook{Why: Halts, Halt: start.OtherSchema(err)}
		}
		return all, nil
	}
	begins := beginnings{
		resolver: r, states: states, partitions: len(logs), committed: committed, plans: plans,
	}
	for p, log := range logs {
		f := start.Facts{Partition: ledger.Partition{Topic: r.Topic, Number: p}, Committed: len(committed) > 0, Log: log}
		identity, err := r.Identities.Of(ctx, f.Partition)
		if err != nil {
			return nil, err
		}
		f.Now = identity
		decisions, err := start.DecideAll(states, f, r.Terms.OnGap)
		if halt, ok := errors.AsType[*health.Halt](err); ok {
			all[p] = Outlook{Why: Halts, Halt: halt}
			continue
		}
		at := r.of(f.Partition)
		known, err := at.sameRecords(ctx, p, commits.TrailOf(committed[p]), identity)
		if err != nil {
			return nil, err
		}
		shard := max(0, slices.IndexFunc(decisions, func(d start.Decision) bool { return d.Step != start.GoOn }))
		switch d := decisions[shard]; d.Step {
		case start.GoOn:
			all[p] = Outlook{Why: FromLedger, At: d.At.From}
			positions := make(ledger.Positions, len(decisions))
			for i := range decisions {
				positions[i] = decisions[i].At
				all[p].At = min(all[p].At, decisions[i].At.From)
			}
			_, err := at.lineage(ctx, committed, states, positions)
			if halt, ok := errors.AsType[*health.Halt](err); ok {
				all[p] = Outlook{Why: Halts, Halt: halt}
			} else if err != nil {
				return nil, err
			}
		case start.Confirm:
			all[p] = Outlook{Why: Halts, Halt: start.Truncated(at.Field, d.At, f.Log)}
		case start.Skip, start.Join:
			if all[p], err = at.outlook(ctx, d, f, known.Within(log.End), states[shard].Clock); err != nil {
				return nil, err
			}
		default:
			if all[p], err = begins.outlook(ctx, d.Step, shard, p); err != nil {
				return nil, fmt.Errorf("find where %s begins: %w", r.Topic, err)
			}
		}
	}
	return all, nil
}

// beginnings are the start positions of all partitions of a topic, resolved once.
type beginnings struct {
	resolver   *Resolver
	states     []ledger.State
	partitions int
	committed  map[int]kafkaconn.Commit
	plans      map[int]ledger.Origin

	set     []ledger.StartPosition
	stopped *health.Halt
}

// outlook returns the outlook of a partition of a topic that a shard doesn't have.
func (b *beginnings) outlook(ctx context.Context, s start.Step, shard, partition int) (Outlook, error) {
	if b.set == nil && b.stopped == nil {
		var err error
		if b.set, err = b.resolve(ctx, s, shard); err != nil && !errors.As(err, &b.stopped) {
			return Outlook{}, err
		}
	}
	if b.stopped != nil {
		return Outlook{Why: Halts, Halt: b.stopped}, nil //nolint:nilerr // a halt is what is shown
	}
	for _, begin := range b.set {
		if begin.Partition.Number != partition {
			continue
		}
		if s == start.Recover {
			return Outlook{Why: Lost, At: begin.At.From, Partial: begin.Origin.Time}, nil
		}
		return Outlook{Why: First, At: begin.At.From, Partial: begin.Origin.Time}, nil
	}
	return Outlook{Why: Added}, nil // the shard from which the start is copied doesn't have the partition either
}

func (b *beginnings) resolve(ctx context.Context, s start.Step, shard int) ([]ledger.StartPosition, error) {
	if s == start.Copy {
		return start.CopyOf(b.states, b.resolver.Topic)
	}
	set, _, err := b.resolver.resolveAll(ctx, s, b.partitions, b.committed, b.plans, b.states[shard].Clock)
	if err != nil {
		return nil, err
	}
	return set, start.NotBefore(b.states, shard, set)
}

// outlook returns the outlook of a partition that continues after a gap, or that was added and is read from its
// start.
func (r *Resolver) outlook(ctx context.Context, d start.Decision, f start.Facts, known trail.Trail, clock clock) (Outlook, error) {
	o := Outlook{Why: OverGap, At: d.At.From}
	if d.Step == start.Join {
		o = Outlook{Why: Added, At: f.Log.Start}
	}
	origin, err := r.originOf(ctx, f.Log, &known, clock)
	o.Partial = origin.Time
	return o, err
}
