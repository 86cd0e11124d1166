package simulate

// Boards by several rules, and configurations that change.

import (
	"strings"
	"testing"
)

// lived lives worlds of seeds from one on, and fails with the first that does.
func lived(t *testing.T, from int64, n int) *report {
	t.Helper()
	if *flagSeed != 0 {
		t.Skip("one world is lived alone")
	}
	all := newReport()
	for i := range int64(fewer(n)) {
		if (i+1)%crowdEvery == 0 {
			continue // of as many boards as others have events
		}
		seed := from + 1 + i
		w := live(t, draw(seed))
		if all.add(w); w.failed != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.failed, strings.Join(w.story, "\n  "))
		}
	}
	return all
}

func TestBoardsBySeveralRulesEndAsTheOracleSaysWhateverHappens(t *testing.T) {
	n := 100
	if many() {
		n = 150
	}
	r := lived(t, ruledFrom, n)
	t.Logf("%v", r)
	r.has(t, overflown, lacksFields)
}

func TestARecordCountsByTheRulesThatItsSweepWasBegunByWhateverHappens(t *testing.T) {
	n := 100
	if many() {
		n = 150
	}
	r := lived(t, booksFrom, n)
	t.Logf("%v", r)
	r.has(t, configure, byOtherRules, lacksFields)
}

// has holds that some kinds took effect; with the race detector worlds are too few for that.
func (r *report) has(t *testing.T, kinds ...string) {
	t.Helper()
	if shuffled {
		return
	}
	for _, kind := range kinds {
		if r.Counts[kind] == 0 {
			t.Errorf("in %d worlds there never was: %s", r.Worlds, kind)
		}
	}
}
