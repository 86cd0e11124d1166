package model

import (
	"fmt"
	"testing"
)

func (l *log) String() string {
	var times []int8
	for _, r := range l.records {
		times = append(times, r.time)
	}
	gap := "continue"
	if l.halts {
		gap = "halt"
	}
	name := fmt.Sprintf("times %v, from %s, on_gap %s, %+v", times, l.from, gap, l.faults)
	if l.disorder >= 0 {
		name += fmt.Sprintf(", disorder %d", l.disorder)
	}
	if l.appended {
		name += ", the broker's times"
	}
	if l.sparse {
		name += ", a sparse trail"
	}
	return name
}

func TestAWindowShownAsCompleteIsWhateverHappens(t *testing.T) {
	t.Parallel()
	late := timed(2, 1, 2)
	logs := []*log{
		{records: late, from: fromWindow, last: 3, halts: true, disorder: -1, faults: mishaps{crash: 1, wipe: 1}},
		{records: late, from: fromEarliest, last: 3, disorder: -1, faults: mishaps{crash: 1, wipe: 1}},
		{records: late, from: fromLatest, last: 3, disorder: 1, faults: mishaps{rollback: 1, rebuild: 1}},
		{records: late, from: fromEarliest, last: 3, disorder: -1, faults: mishaps{crash: 1, rollback: 1}},
		{records: timed(1, 2, 2), from: fromEarliest, last: 3, disorder: -1, appended: true, faults: mishaps{crash: 1, wipe: 1}},
		{records: timed(1, 3, 2, 3), from: fromEarliest, last: 3, disorder: -1, sparse: true, faults: mishaps{wipe: 1, rebuild: 1}},
		{records: []record{{2, 2}, {0, 3}, {2, 2}}, from: fromEarliest, last: 3, disorder: -1, faults: mishaps{crash: 1}},
		{records: []record{{0, 2}, {0, 1}, {0, 2}}, from: fromWindow, last: 3, disorder: -1, faults: mishaps{crash: 1, wipe: 1}},
		{records: timed(1, 1, 2), regrown: timed(1, 3, 3), from: fromEarliest, last: 3, disorder: -1, faults: mishaps{wipe: 1, cut: 1}},
	}
	if *large {
		more := timed(2, 1, 3, 2)
		logs = append(logs, []*log{
			{records: more, from: fromWindow, keep: 1, last: 4, halts: true, disorder: -1, faults: mishaps{crash: 1, wipe: 1, rollback: 1}},
			{records: more, from: fromEarliest, last: 3, disorder: 1, faults: mishaps{crash: 1, wipe: 1}},
			{records: more, from: fromLatest, last: 3, disorder: -1, sparse: true, faults: mishaps{crash: 1, wipe: 1, rebuild: 1}},
			{records: late, from: fromEarliest, last: 3, disorder: -1, faults: mishaps{crash: 2, wipe: 1}},
		}...)
	}
	for _, l := range logs {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			holds(t, l.space())
		})
	}
}

func TestEveryBrokenRuleOfCompleteIsCaught(t *testing.T) {
	t.Parallel()
	late := timed(2, 1, 2)
	for variant, l := range map[brokenRule]*log{
		firstRemaining: {records: late, from: fromEarliest, last: 2, disorder: -1},
		unbridged:      {records: late, from: fromEarliest, last: 2, disorder: -1, faults: mishaps{crash: 1, wipe: 1}},
		markBefore:     {records: timed(1, 2, 2), from: fromEarliest, last: 2, disorder: -1, faults: mishaps{wipe: 1}},
		noMaximum:      {records: timed(1, 1, 1), from: fromEarliest, last: 2, disorder: 0},
		trailForgotten: {records: late, from: fromEarliest, last: 2, disorder: -1, faults: mishaps{rollback: 1, wipe: 1}},
		beyondBelieved: {records: timed(1, 1, 2), regrown: timed(1, 3, 3), from: fromEarliest, last: 3, disorder: -1, faults: mishaps{cut: 1, wipe: 1}},
		refilled:       {records: late, from: fromEarliest, last: 2, halts: true, disorder: -1, faults: mishaps{wipe: 1}},
		momentBefore:   {records: timed(2), from: fromEarliest, last: 2, disorder: -1},
		skipUnnamed:    {records: late, from: fromEarliest, last: 2, disorder: -1},
		rebuiltLower:   {records: late, from: fromLatest, last: 3, disorder: -1, faults: mishaps{rebuild: 1}},
		untrailed:      {records: late, from: fromEarliest, last: 2, disorder: -1, faults: mishaps{wipe: 1}},
		boundItself:    {records: late, from: fromEarliest, last: 2, disorder: -1},
		askedAlone:     {records: timed(2, 1, 2), from: fromWindow, last: 2, disorder: -1},
		untimedIgnored: {records: []record{{0, 1}, {1, 1}}, from: fromEarliest, last: 2, disorder: -1, faults: mishaps{wipe: 1}},
	} {
		t.Run(string(variant), func(t *testing.T) {
			l.variant = variant
			fails(t, l.space())
			if *large {
				l.variant = ""
				holds(t, l.space())
			}
		})
	}
}
