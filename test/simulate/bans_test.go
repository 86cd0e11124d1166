package simulate

// Members who are banned, by seeds that have them.

import (
	"strings"
	"testing"
)

func TestWhoIsBannedIsHiddenAndNobodyElseAndNothingIsLost(t *testing.T) {
	if *flagSeed != 0 {
		t.Skip("one world is lived alone")
	}
	n := 40
	if many() {
		n = 100
	}
	all := newReport()
	for i := range int64(fewer(n)) {
		seed := bansAt + bansEvery*i
		w := live(t, draw(seed))
		if all.add(w); w.failed != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.failed, strings.Join(w.story, "\n  "))
		}
	}
	t.Logf("%v", all)
	all.has(t, bansMember, bansAll, unbans, erases, bansAway, bansEnds, hides, shows, earnedHidden, earnedErased, hidesAgain)
}
