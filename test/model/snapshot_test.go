package model

import (
	"fmt"
	"testing"
)

func (w *snapshots) String() string {
	return fmt.Sprintf("events %v, %+v", w.events, w.faults)
}

func TestWhatIsRestoredIsWhatItsLedgerDenotesWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*snapshots{
		{events: []snapEvent{{2, 1}, {1, 3}, {2, 3}}, faults: snapFaults{snapshots: 1, restores: 1}},
		{events: []snapEvent{{2, 3}, {1, 1}}, faults: snapFaults{snapshots: 1, restores: 1, rollback: 1}},
		{events: []snapEvent{{2, 3}, {1, 1}}, faults: snapFaults{snapshots: 1, restores: 1, wipe: 1, seal: 1}},
		{events: []snapEvent{{2, 1}, {1, 1}}, faults: snapFaults{snapshots: 1, restores: 1, ban: 2}},
		{events: []snapEvent{{2, 3}, {1, 1}}, faults: snapFaults{snapshots: 1, restores: 1, death: 1}},
	}
	if *large {
		worlds = []*snapshots{
			{events: []snapEvent{{2, 1}, {1, 3}, {2, 3}}, faults: snapFaults{snapshots: 1, restores: 1, rollback: 1}},
			{events: []snapEvent{{2, 3}, {1, 3}}, faults: snapFaults{snapshots: 1, restores: 1, death: 1, wipe: 1}},
			{events: []snapEvent{{2, 1}, {1, 1}}, faults: snapFaults{snapshots: 2, restores: 1, rollback: 1}},
			{events: []snapEvent{{2, 1}, {1, 1}}, faults: snapFaults{snapshots: 1, restores: 1, rollback: 1, ban: 2}},
			{events: []snapEvent{{2, 1}, {1, 1}, {2, 2}}, faults: snapFaults{snapshots: 1, restores: 1, wipe: 1, seal: 1}},
		}
	}
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			holds(t, w.space())
		})
	}
}

// Each broken rule with the smallest world that shows what it is for.
func TestEveryBrokenRuleOfSnapshotsIsCaught(t *testing.T) {
	t.Parallel()
	two := []snapEvent{{2, 1}, {1, 1}}
	once := snapFaults{snapshots: 1, restores: 1}
	for variant, w := range map[snapRule]*snapshots{
		highestReplayed: {events: []snapEvent{{2, 1}, {1, 1}, {2, 1}}, faults: once},
		lowestForAll:    {events: two, faults: once},
		absentFromLast:  {events: two, faults: once},
		copiesMixed:     {events: []snapEvent{{2, 1}, {2, 1}}, faults: once},
		byRank:          {events: []snapEvent{{1, 1}, {2, 1}, {1, 1}}, faults: once},
		sweepUnread:     {events: two, faults: once},
		sweepWhole:      {events: []snapEvent{{2, 1}, {2, 1}}, faults: once},
		pageApart:       {events: []snapEvent{{2, 1}, {2, 1}}, faults: once},
		listedBefore:    {events: []snapEvent{{2, 1}, {1, 2}}, faults: once},
		tokenEarly:      {events: two, faults: snapFaults{snapshots: 1, restores: 1, rollback: 1}},
		tokenUnchecked:  {events: two, faults: snapFaults{snapshots: 1, restores: 1, rollback: 1}},
		bansUnwatched:   {events: two, faults: snapFaults{snapshots: 1, restores: 1, ban: 2}},
		bansAtEnd:       {events: two[:1], faults: snapFaults{snapshots: 1, restores: 1, rollback: 1, ban: 1}},
		bansPassed:      {events: two, faults: snapFaults{snapshots: 1, restores: 1, ban: 2}},
		sealUnseen:      {events: []snapEvent{{2, 1}, {2, 1}}, faults: snapFaults{snapshots: 1, restores: 1, seal: 1, wipe: 1}},
		sealedFolded:    {events: two, faults: snapFaults{snapshots: 1, restores: 1, seal: 1, wipe: 1}},
		tornPaged:       {events: two, faults: snapFaults{snapshots: 1, restores: 1, death: 1}},
		swapsEarly:      {events: []snapEvent{{2, 1}, {2, 1}}, faults: snapFaults{snapshots: 1, restores: 1, wipe: 1}},
		inPlace:         {events: two, faults: snapFaults{snapshots: 1, restores: 1, wipe: 1}},
		loadUnfenced:    {events: two, faults: snapFaults{snapshots: 1, restores: 1, rollback: 1}},
		loadForgotten:   {events: two, faults: once},
		shadowOfOther:   {events: two, faults: snapFaults{snapshots: 2, restores: 1}},
	} {
		t.Run(string(variant), func(t *testing.T) {
			t.Parallel()
			w.variant = variant
			fails(t, w.space())
			w.variant = ""
			holds(t, w.space())
		})
	}
}
