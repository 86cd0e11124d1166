package model

import (
	"fmt"
	"strings"
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
		{members: []int8{0, 1}, faults: sealFaults{crash: 1, rollback: 1, reopen: 1}},
	}
	if *large {
		worlds = []*seals{
			{members: []int8{0, 1, 0, 1}, faults: sealFaults{crash: 1}},
			{members: []int8{0, 1, 0}, faults: sealFaults{crash: 1, rollback: 1, reopen: 1}},
		}
	}
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			f, v := search(w.space())
			if v != nil {
				t.Fatalf("%s, after %d states:\n  %s", v.what, v.after, strings.Join(v.story, "\n  "))
			}
			t.Log(f)
		})
	}
}

// Each broken rule with a small world that shows what it is for.
func TestEveryBrokenRuleOfSealsIsCaught(t *testing.T) {
	t.Parallel()
	of := []int8{0, 1}
	for variant, w := range map[sealRule]*seals{
		endBeforeDue:    {members: of},
		ledgerUnread:    {members: of},
		oneForAll:       {members: []int8{0, 1}},
		sealIgnored:     {members: of},
		offsetForgotten: {members: []int8{0, 0}, faults: sealFaults{rollback: 1}},
		oneShardSealed:  {members: of},
		reopenUnnoted:   {members: of, faults: sealFaults{reopen: 1}},
	} {
		t.Run(string(variant), func(t *testing.T) {
			w.variant = variant
			f, v := search(w.space())
			if v == nil {
				t.Fatalf("nobody notices that %s: %v", variant, f)
			}
			t.Logf("%s, after %d states:\n  %s", v.what, v.after, strings.Join(v.story, "\n  "))
			w.variant = ""
			if _, v := search(w.space()); v != nil {
				t.Fatalf("the protocol itself fails there: %s\n  %s", v.what, strings.Join(v.story, "\n  "))
			}
		})
	}
}
