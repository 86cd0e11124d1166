package model

import (
	"fmt"
	"testing"
)

func (w *generations) String() string {
	return fmt.Sprintf("replicas %d, jobs %d, %+v", w.workers, w.jobs, w.faults)
}

func TestOneCopyIsLiveWhateverHappens(t *testing.T) {
	t.Parallel()
	worlds := []*generations{
		{workers: 2, jobs: 1},
		{workers: 1, jobs: 1, faults: generationFaults{death: 1, ban: 1}},
		{workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
		{workers: 1, jobs: 1, faults: generationFaults{together: 1}},
		{workers: 1, jobs: 1, faults: generationFaults{wipe: 1, restart: 1}},
	}
	if *large {
		worlds = append(worlds, []*generations{
			{workers: 2, jobs: 1, faults: generationFaults{death: 1, ban: 1}},
			{workers: 1, jobs: 2},
			{workers: 1, jobs: 1, faults: generationFaults{death: 1, apart: 1, restart: 1}},
			{workers: 1, jobs: 1, faults: generationFaults{apart: 2}},
		}...)
	}
	for _, w := range worlds {
		t.Run(w.String(), func(t *testing.T) {
			holds(t, w.space())
		})
	}
}

// Each broken rule is paired with a small world in which it causes a violation.
func TestEveryBrokenRuleOfGenerationsIsCaught(t *testing.T) {
	t.Parallel()
	for variant, w := range map[generationRule]*generations{
		numberIsName:    {workers: 1, jobs: 2},
		bornLive:        {workers: 1, jobs: 1, faults: generationFaults{wipe: 1, death: 1}},
		backByNumber:    {workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
		expiryKept:      {workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
		emptyStarted:    {workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
		switchBlind:     {workers: 1, jobs: 2},
		recordUnread:    {workers: 1, jobs: 1, faults: generationFaults{death: 1}},
		schemaUnread:    {workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
		commitTrusted:   {workers: 1, jobs: 1, faults: generationFaults{wipe: 1}},
		configured:      {workers: 1, jobs: 1, faults: generationFaults{wipe: 1}},
		bansOnce:        {workers: 1, jobs: 1, faults: generationFaults{ban: 1}},
		doneUnmarked:    {workers: 1, jobs: 1, faults: generationFaults{wipe: 1}},
		oldUnmarked:     {workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
		doneUnconfirmed: {workers: 1, jobs: 1, faults: generationFaults{together: 1}},
		markNotFollows:  {workers: 1, jobs: 1, faults: generationFaults{apart: 1}},
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
