package start

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
)

// Of several shards each has a ledger, and the table is gone through for each. What one alone
// can't know is what a shard without the topic is: one that hasn't begun, or one that was lost.
//
//	the others                          the group        the shard
//	have nothing of the topic           -                as the table says: the first one begins
//	stand where they began, all of      has committed    begins where they did, by a copy
//	them and in every partition         nothing
//	anything else                       -                was lost: it is recovered, from where
//	                                                     the others began or later
//
// Offsets are committed once every shard has begun, and before anything is read; until then there is at most a plan
// (plan.go), which does not count. So nobody
// has read anything as long as the others stand at their origins and nothing is committed;
// and where Kafka has forgotten what was committed, they don't stand there any more.

// DecideAll goes through the table for every shard of a partition. A halt names the shard.
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

// begun reports whether the ledger has anything of the topic.
func (f *Facts) begun() bool { return f.Found != "" || f.Others }

// others says what the shards but one have of a topic: whether any has it, and whether all of
// those stand where they began.
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

// CopyOf is where all partitions of a topic begin by the first shard that has it, in their order.
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

// NotBefore has partitions of a shard that was lost begin no earlier than the other shards
// did: what came before counts on none of them.
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

// ofShard names the shard in a halt, where there are several.
func ofShard(err error, shard, of int) error {
	halt, ok := errors.AsType[*health.Halt](err)
	if !ok || of == 1 {
		return err
	}
	named := *halt
	named.What = fmt.Sprintf("shard %d of %d: %s", shard, of, halt.What)
	return &named
}
