package start

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// If there are several shards, each has a ledger, and the start table is applied to each. The table alone
// cannot decide about a shard without the topic, which either has not started or was lost:
//
//    the other shards                    the group        the shard
//    have nothing of the topic           -                by the table: it starts first
//    are all where they started,         has committed    starts where they did, by a copy
//    in every partition                  nothing
//    anything else                       -                was lost: it is recovered, from where
//                                                         the others started or later
//
// A worker commits offsets once every shard has started, and before it reads anything. Until then there is at
// most a plan (plan.go), which is not such a commit. Therefore, no worker has read anything as long as the
// other shards are at their origins and nothing is committed. If Kafka has deleted the committed offsets, the
// other shards are no longer at their origins.

// DecideAll applies the start table to every shard of a partition. A halt names the shard.
func DecideAll(states []ledger.State, f Facts, onGap OnGap) ([]Decision, error) {
	all := make([]Decision, len(states))
	for i := range states {
		of := FactsOf(states[i], f.Partition)
		of.Committed, of.Log, of.Now = f.Committed, f.Log, f.Now
		if !of.begun() {
			of.Elsewhere, of.Unread = others(states, i, f.Partition.Topic)
		}
		var err error
		if all[i], err = Decide(of, onGap); err != nil {
			return nil, ofShard(err, i, len(states))
		}
	}
	return all, nil
}

// AllHaveTopic reports whether every shard has the topic.
func AllHaveTopic(states []ledger.State, topic string) bool {
	return !slices.ContainsFunc(states, func(s ledger.State) bool { return !HasTopic(s, topic) })
}

// begun reports whether the ledger has a partition of the topic.
func (f *Facts) begun() bool { return f.Found != "" || f.Others }

// others reports whether any shard except one has the topic, and whether all shards that have it are at their
// origins.
func others(states []ledger.State, but int, topic string) (have, unread bool) {
	unread = true
	for i := range states {
		if i == but || !HasTopic(states[i], topic) {
			continue
		}
		have = true
		for field, text := range states[i].Ledger {
			if !isOf(field, topic) {
				continue
			}
			origin, err := ledger.ParseOrigin(states[i].Origins[field])
			unread = unread && err == nil && text == ledger.At(origin.Offset).String()
		}
	}
	return have, unread
}

// CopyOf returns the start positions of all partitions of a topic on the first shard that has it, in the order
// of partitions.
func CopyOf(states []ledger.State, topic string) ([]ledger.StartPosition, error) {
	for i := range states {
		if !HasTopic(states[i], topic) {
			continue
		}
		var set []ledger.StartPosition
		for field, text := range states[i].Ledger {
			p, err := ledger.ParsePartition(field)
			if err != nil || p.Topic != topic {
				continue
			}
			at, err := ledger.Parse(text)
			if err != nil {
				return nil, fmt.Errorf("copy where %s begins: %w", field, err)
			}
			origin, err := ledger.ParseOrigin(states[i].Origins[field])
			if err != nil {
				return nil, fmt.Errorf("copy where %s begins: %w", field, err)
			}
			set = append(set, ledger.StartPosition{Partition: p, At: at, Origin: &origin})
		}
		slices.SortFunc(set, func(a, b ledger.StartPosition) int { return cmp.Compare(a.Partition.Number, b.Partition.Number) })
		return set, nil
	}
	return nil, nil
}

// NotBefore makes the partitions of a lost shard start no earlier than on the other shards: no shard counts
// earlier events.
func NotBefore(states []ledger.State, shard int, set []ledger.StartPosition) error {
	for n := range set {
		b, field := &set[n], set[n].Partition.String()
		var first *ledger.Origin
		for i := range states {
			text, ok := states[i].Origins[field]
			if i == shard || !ok || !HasTopic(states[i], b.Partition.Topic) {
				continue
			}
			origin, err := ledger.ParseOrigin(text)
			if err != nil {
				return fmt.Errorf("shard %d: %s: %w", i, field, err)
			}
			if first == nil || origin.Offset < first.Offset {
				first = &origin
			}
		}
		if first != nil && first.Offset > b.At.From {
			b.At, b.Origin = ledger.At(first.Offset), first
		}
	}
	return nil
}

// ofShard adds the shard to a halt if there are several.
func ofShard(err error, shard, of int) error {
	halt, ok := errors.AsType[*health.Halt](err)
	if !ok || of == 1 {
		return err
	}
	named := *halt
	named.What = fmt.Sprintf("shard %d of %d: %s", shard, of, halt.What)
	return &named
}
