package model

import (
	"fmt"
	"testing"
)

func (w *ruled) String() string {
	return fmt.Sprintf("members %v, shards %d, workers %d, %+v", w.members, w.shards, w.workers, w.faults)
}

// The members of each record under A and under B: another member, none, or a member of another shard.
var (
	inOne  = [ruleCount][]int8{{2, 1, 2}, {1, 2, 0}}
	inTwo  = [ruleCount][]int8{{1, 3, 2}, {3, 1, 4}}
	inBoth = [ruleCount][]int8{{1, 3, 2, 4}, {3, 0, 4, 1}}
)

func TestEachRecordCountsByOneOfTheRulesWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*ruled{
		{members: inOne, shards: 1, workers: 1, faults: ruledFaults{replaced: 2, late: 1, rollback: 1, forget: 1}},
		{members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 3, late: 2, forget: 1}},
		{members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 2, late: 2, rollback: 1}},
		{members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 2, late: 2, apart: 1}},
	}
	if *large {
		worlds = append(worlds, []*ruled{
			{members: inOne, shards: 1, workers: 2, faults: ruledFaults{replaced: 1, late: 1, rollback: 1}},
			{members: inOne, shards: 1, workers: 2, faults: ruledFaults{replaced: 1, late: 1, rollback: 1, forget: 1}},
			{members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 3, late: 2, rollback: 1, apart: 1, forget: 1}},
			{members: inBoth, shards: 2, workers: 1, faults: ruledFaults{replaced: 3, late: 2, apart: 1}},
		}...)
	}
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			holds(t, w.space())
		})
	}
}

// Each broken rule is paired with the smallest world in which it causes a violation.
func TestEveryBrokenRuleOfRulesIsCaught(t *testing.T) {
	t.Parallel()
	for variant, w := range map[ruledVariant]*ruled{
		ownAlways:       {members: inOne, shards: 1, workers: 1, faults: ruledFaults{replaced: 1}},
		textApart:       {members: inOne, shards: 1, workers: 1, faults: ruledFaults{replaced: 1}},
		markNotCompared: {members: inOne, shards: 1, workers: 1, faults: ruledFaults{replaced: 1, late: 1, rollback: 1}},
		notedInMemory:   {members: inOne, shards: 1, workers: 2, faults: ruledFaults{replaced: 1, rollback: 1}},
		levelledByOwn:   {members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 1}},
		levelledByLast:  {members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 2}},
		leftBehind:      {members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 1}},
		wholeUnnoted:    {members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 1}},
		knownUnnoted:    {members: inTwo, shards: 2, workers: 1, faults: ruledFaults{replaced: 3}},
		textForgotten:   {members: inOne, shards: 1, workers: 1, faults: ruledFaults{replaced: 1, forget: 1}},
	} {
		t.Run(string(variant), func(t *testing.T) {
			w.variant = variant
			fails(t, w.space())
			if *large {
				w.variant = ""
				holds(t, w.space())
			}
		})
	}
}

// guarantees.md lists these cases as not promised. A change that makes one of them hold must remove it
// from both.
func TestWhatIsntPromisedWhereRulesOfSeveralShardsChangeCanHappen(t *testing.T) {
	t.Parallel()
	for what, faults := range map[string]ruledFaults{
		"a late call of other rules begins a batch": {replaced: 1, late: 1},
		"Redis goes back past a change of rules":    {replaced: 1, rollback: 1},
		"a master goes back past a change of rules": {replaced: 1, apart: 1},
	} {
		t.Run(what, func(t *testing.T) {
			w := &ruled{members: inTwo, shards: 2, workers: 1, beyond: true, faults: faults}
			fails(t, w.space())
		})
	}
}
