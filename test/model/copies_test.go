package model

import (
	"fmt"
	"testing"
)

func (w *copies) String() string {
	return fmt.Sprintf("members %v, %s, workers %d, jobs %d, %+v", w.members, [...]string{"reshard", "rename all", "rename some"}[w.way], w.workers, w.jobs, w.faults)
}

func TestACopyHasWhatItsLedgerDenotesWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*copies{
		{members: [][]int8{{1, 3}}, workers: 2, jobs: 1, faults: copyFaults{rollback: 1}},
		{members: [][]int8{{1, 3}}, workers: 1, jobs: 1, faults: copyFaults{crash: 1, death: 1, lapse: 1}},
		{members: [][]int8{{1, 2}}, workers: 1, jobs: 1, faults: copyFaults{rollback: 1}, way: renames},
		{members: [][]int8{{1, 2}}, workers: 1, jobs: 1, faults: copyFaults{lapse: 1, rollback: 1}, way: renamesOne},
		{members: [][]int8{{1, 3}, {3}}, workers: 2, jobs: 1},
		{members: [][]int8{{1, 3}}, workers: 1, jobs: 2},
		{members: [][]int8{{1, 2}}, workers: 1, jobs: 1, faults: copyFaults{lapse: 1, ban: 1}},
		{members: [][]int8{{1, 3}}, workers: 1, jobs: 1, faults: copyFaults{lapse: 1, seal: 1}},
	}
	if *large {
		worlds = append(worlds, []*copies{
			{members: [][]int8{{1, 3}}, workers: 2, jobs: 1, faults: copyFaults{crash: 1, rollback: 1, lapse: 1}},
			{members: [][]int8{{1, 3, 2}}, workers: 1, jobs: 1, faults: copyFaults{death: 1, lapse: 1, rollback: 1}},
			{members: [][]int8{{1, 3}}, workers: 1, jobs: 1, faults: copyFaults{rollback: 2}},
			{members: [][]int8{{1, 3}}, workers: 1, jobs: 2, faults: copyFaults{lapse: 1, death: 1, rollback: 1}},
			{members: [][]int8{{1, 3}, {3}}, workers: 2, jobs: 1, faults: copyFaults{lapse: 1, death: 1}},
		}...)
	}
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			holds(t, w.space())
		})
	}
}

// Each broken rule is paired with a small world in which it causes a violation.
func TestEveryBrokenRuleOfCopiesIsCaught(t *testing.T) {
	t.Parallel()
	two := [][]int8{{1, 3}}
	for variant, w := range map[copyRule]*copies{
		allHeld:         {members: [][]int8{{1, 2}}, workers: 1, jobs: 1},
		lowestFirst:     {members: [][]int8{{3, 1, 4}}, workers: 1, jobs: 1, faults: copyFaults{crash: 1}},
		waitsInBatch:    {members: [][]int8{{3, 3}}, workers: 1, jobs: 1},
		goneHoldIgnored: {members: [][]int8{{1, 3, 1}}, workers: 1, jobs: 1, faults: copyFaults{lapse: 1}},
		targetKept:      {members: [][]int8{{1, 3, 1}}, workers: 2, jobs: 1},
		oneTargetForAll: {members: [][]int8{{1, 3}, {3}}, workers: 2, jobs: 1},
		startHeld:       {members: [][]int8{{1, 3}, {3}}, workers: 2, jobs: 1},
		oneIdentity:     {members: two, workers: 1, jobs: 1, faults: copyFaults{rollback: 1, lapse: 1}},
		sourceUnread:    {members: two, workers: 1, jobs: 1, faults: copyFaults{lapse: 1}},
		progressUnread:  {members: two, workers: 1, jobs: 1, faults: copyFaults{rollback: 1}},
		holdUnread:      {members: [][]int8{{1, 2}}, workers: 1, jobs: 1, faults: copyFaults{lapse: 1, ban: 1}},
		banUnderHold:    {members: [][]int8{{1, 2}}, workers: 1, jobs: 1, faults: copyFaults{ban: 1}},
		lockUncompared:  {members: two, workers: 1, jobs: 1, faults: copyFaults{lapse: 1, seal: 1}},
		builtPast:       {members: two, workers: 1, jobs: 1, way: renamesOne},
		keptBehind:      {members: two, workers: 1, jobs: 1, way: renamesOne},
		holdTrusted:     {members: two, workers: 1, jobs: 1, way: renamesOne, faults: copyFaults{lapse: 1}},
		reopenedEarly:   {members: [][]int8{{1, 1, 1}}, workers: 1, jobs: 1, way: renames},
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
