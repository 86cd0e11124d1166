package model

import (
	"fmt"
	"testing"
)

func (w *seals) String() string { return fmt.Sprintf("members %v, %+v", w.members, w.faults) }

func TestAFinalWindowHasWhatItsSealsLedgerDenotesWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*seals{
		{members: []int8{0, 1, 0}},
		{members: []int8{0, 1, 1}, faults: sealFaults{crash: 1}},
		{members: []int8{0, 1}, faults: sealFaults{reopen: 2}},
		{members: []int8{0, 1}, faults: sealFaults{rollback: 1}},
	}
	if *large {
		worlds = append(worlds, []*seals{
			{members: []int8{0, 1}, faults: sealFaults{crash: 1, rollback: 1, reopen: 1}},
			{members: []int8{0, 1, 0, 1}, faults: sealFaults{crash: 1}},
			{members: []int8{0, 1, 0}, faults: sealFaults{crash: 1, rollback: 1, reopen: 1}},
		}...)
	}
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			holds(t, w.space())
		})
	}
}

// Each broken rule is paired with a small world in which it causes a violation.
func TestEveryBrokenRuleOfSealsIsCaught(t *testing.T) {
	t.Parallel()
	of := []int8{0, 1}
	for variant, w := range map[sealRule]*seals{
		endBeforeDue:   {members: of},
		ledgerUnread:   {members: of},
		oneForAll:      {members: []int8{0, 1}},
		sealIgnored:    {members: of},
		leftOutUnread:  {members: []int8{0, 0}, faults: sealFaults{rollback: 1}},
		oneShardSealed: {members: of},
		reopenUnnoted:  {members: of, faults: sealFaults{reopen: 1}},
		passedUnnoted:  {members: of, faults: sealFaults{reopen: 1}},
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
