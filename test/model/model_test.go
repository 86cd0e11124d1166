package model

import (
	"flag"
	"fmt"
	"testing"
)

var large = flag.Bool("large", false, "search the large worlds, too: millions of states, minutes, gigabytes")

func (w *world) String() string {
	name := fmt.Sprintf("hashes %v, %+v", w.hashes, w.faults)
	if w.kept {
		name += ", with a kept window"
	}
	return name
}

func TestTheScoresAreWhatTheLedgerDenotesWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*world{
		{hashes: []int{2, 1}, faults: budget{crash: 1, timeout: 1, rollback: 1}},
		{hashes: []int{2, 0, 1}, faults: budget{crash: 1, wipe: 1}},
		{hashes: []int{2, 1}, faults: budget{rollback: 1, rebuild: 1}, kept: true},
		{hashes: []int{2, 1}, faults: budget{crash: 1, death: 1}},
		{hashes: []int{2, 1}, faults: budget{death: 1, rebuild: 1}, kept: true},
	}
	if *large {
		worlds = append(worlds, []*world{
			{hashes: []int{2, 1, 3, 1}, faults: budget{crash: 1, timeout: 1, rollback: 1}},
			{hashes: []int{2, 0, 1, 2}, faults: budget{crash: 1, timeout: 1, wipe: 1}},
			{hashes: []int{2, 1, 3}, faults: budget{crash: 1, rollback: 1, rebuild: 1}, kept: true},
			{hashes: []int{2, 1, 2}, faults: budget{crash: 1, timeout: 1, death: 1, rebuild: 1}},
			{hashes: []int{2, 1}, faults: budget{crash: 1, rollback: 1, death: 1, rebuild: 1}, kept: true},
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
func TestEveryBrokenRuleIsCaught(t *testing.T) {
	t.Parallel()
	two := []int{2, 1}
	for variant, w := range map[variant]*world{
		notCompared:     {hashes: two, faults: budget{timeout: 1}},
		atLeast:         {hashes: two, faults: budget{timeout: 1}},
		resentUnfenced:  {hashes: two, faults: budget{timeout: 1}},
		tornUnmarked:    {hashes: two, faults: budget{death: 1}},
		tornIgnored:     {hashes: two, faults: budget{death: 1}},
		outOfOrder:      {hashes: two},
		boundTaken:      {hashes: two},
		endForgotten:    {hashes: []int{2, 1, 1}, faults: budget{crash: 1}},
		hashForgotten:   {hashes: two, faults: budget{crash: 1}},
		stopsBehind:     {hashes: two, faults: budget{crash: 1}},
		neverLooks:      {hashes: two, faults: budget{rollback: 1}},
		lettersAtEnd:    {hashes: []int{2, 0, 1}, faults: budget{crash: 1}},
		swapsAtLeast:    {hashes: two, faults: budget{rebuild: 1}, kept: true},
		shadowUnchecked: {hashes: two, faults: budget{rebuild: 1}},
		keptUnnamed:     {hashes: two, faults: budget{death: 1}, kept: true},
		twoHistories:    {hashes: two, faults: budget{rollback: 1}},
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
