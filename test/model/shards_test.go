package model

import (
	"fmt"
	"testing"
)

func (w *shards) String() string {
	return fmt.Sprintf("members %v, %+v", w.members, w.faults)
}

func TestEachShardHasWhatItsLedgerDenotesWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*shards{
		{members: []int8{3, 1, 4}, faults: shardFaults{crash: 1, rollback: 1}},
		{members: []int8{1, 3}, faults: shardFaults{crash: 1, wipe: 1, forget: 1}},
		{members: []int8{3, 1}, faults: shardFaults{rollback: 1, death: 1, delete: 1, forget: 1}},
	}
	if *large {
		worlds = append(worlds, []*shards{
			{members: []int8{1, 3, 0, 2, 4}, faults: shardFaults{crash: 2}},
			{members: []int8{1, 3, 2}, faults: shardFaults{crash: 1, wipe: 1, delete: 1}},
			{members: []int8{1, 3, 2}, faults: shardFaults{crash: 1, rollback: 1, death: 1}},
			{members: []int8{3, 1, 2, 4}, faults: shardFaults{crash: 2, rollback: 1}},
			{members: []int8{1, 3, 2}, faults: shardFaults{crash: 1, wipe: 2, forget: 1}},
			{members: []int8{1, 3, 2, 4}, faults: shardFaults{crash: 1, death: 1, rollback: 1}},
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
func TestEveryBrokenRuleOfShardsIsCaught(t *testing.T) {
	t.Parallel()
	of := []int8{1, 3}
	for variant, w := range map[shardRule]*shards{
		positionIgnored:  {members: of, faults: shardFaults{crash: 1}},
		borderCrossed:    {members: []int8{1, 4}},
		oneEnds:          {members: of},
		allMoved:         {members: of},
		highestCommitted: {members: of},
		readCommitted:    {members: of},
		highestRead:      {members: of, faults: shardFaults{crash: 1}},
		onePositionKept:  {members: of, faults: shardFaults{rollback: 1}},
		oneLookedAt:      {members: of, faults: shardFaults{rollback: 1}},
		endOfAnother:     {members: []int8{1, 2, 3, 4, 1}, faults: shardFaults{crash: 1}},
		alongUnread:      {members: []int8{1, 2, 3}, faults: shardFaults{crash: 1}},
		alongBelow:       {members: []int8{3, 1, 4, 2}, faults: shardFaults{crash: 1, rollback: 1}},
		sweepForgotten:   {members: []int8{1, 2}, faults: shardFaults{crash: 1}},
		tornPassed:       {members: of, faults: shardFaults{death: 1}},
		begunAlone:       {members: of},
		copiedLate:       {members: of, faults: shardFaults{wipe: 1, forget: 1}},
		firstAgain:       {members: of, faults: shardFaults{wipe: 1}},
		readUncommitted:  {members: of, faults: shardFaults{wipe: 1}},
		gapUnnamed:       {members: of, faults: shardFaults{crash: 1, delete: 1}},
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
