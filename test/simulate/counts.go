package simulate

// This file counts what took effect, over all worlds.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report sums up the results of many worlds.
type report struct {
	Worlds int
	Steps  int
	Failed map[int64]string // by seed: the failure
	Counts map[string]int
}

func (r *report) add(w *world) {
	r.Worlds++
	r.Steps += w.step
	if w.failed != "" {
		r.Failed[w.plan.seed] = w.failed
	}
	for kind, n := range w.counts {
		r.Counts[kind] += n
	}
}

func (r *report) merge(o *report) {
	r.Worlds += o.Worlds
	r.Steps += o.Steps
	maps.Copy(r.Failed, o.Failed)
	for kind, n := range o.Counts {
		r.Counts[kind] += n
	}
}

func newReport() *report { return &report{Failed: map[int64]string{}, Counts: map[string]int{}} }

// String returns the report as a table.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d worlds, %d steps, %d failed\n", r.Worlds, r.Steps, len(r.Failed))
	for _, kind := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(&b, "  %-72s %8d\n", kind, r.Counts[kind])
	}
	return b.String()
}

// missing returns the kinds of events that never happened in a run of at least 1000 worlds. A run of 5000
// must also contain every fault at every call.
func (r *report) missing() (all []string) {
	if r.Worlds < 1000 {
		return nil
	}
	count := func(kind string) (n int) {
		for k, c := range r.Counts {
			if k == kind || strings.HasPrefix(k, kind+": ") {
				n += c
			}
		}
		return n
	}
	required := kinds()
	if r.Worlds >= 5000 {
		required = append(required, everywhere()...)
		required = append(required, drops, retires, windowLimit, fullRoom, leftNothing)
	}
	for _, kind := range required {
		if count(kind) == 0 {
			all = append(all, kind)
		}
	}
	return all
}

// awaits lists the calls at which a process waits.
var awaits = []string{"apply", "begin", "state", "position", "report", "fetch", "produce", "commit", "metadata", "offsets", "committed", "join", "sync"}

// everywhere lists every fault of calls for every call.
func everywhere() (all []string) {
	for _, call := range awaits {
		all = append(all, cutBefore+": "+call, lostAnswer+": "+call, silence+": "+call, slow+": "+call)
	}
	for _, call := range []string{"fetch", "produce", "commit", "metadata", "offsets", "committed", "join", "sync"} {
		all = append(all, "Kafka answers an error: "+call)
	}
	all = append(all, errorCode+", and it was done", dies+": rebuild")
	for call := range kafkaCodes {
		all = append(all, errorCode+": "+call)
	}
	return all
}

// kinds lists everything that must take effect in some thousand worlds.
func kinds() (all []string) {
	for _, call := range awaits {
		all = append(all, crash+": "+call)
	}
	for _, t := range troubles {
		all = append(all, "Redis answers "+t.name)
	}
	all = append(all, cutBefore, cutMidway, stale, haltPasses, lostAnswer, silence, slow, "Kafka answers an error", errorCode)
	return append(all,
		crash+": apply, in the middle of a sweep",
		lateDone+": apply", lateDone+": apply, which was still in order", lateDone+": begin", lateDone+": produce",
		dies+": apply", dies+": begin",
		publish, endOpen, stop, start, cutOff, zombie, reunite, rebalance, rollback, rollback+", and nothing comes after", wipe, evict, hold, clock, leap, flush, grow,
		truncate, gapOpens, wait,
		"apply answers moved", "apply answers held", "apply answers refused", "apply answers fits", "apply answers lost",
		"halt: torn", "halt: ledger_lost", "halt: gap", "halt: schema", "halt: board_lost",
		takenOver, refuses, lessMemory, otherCuts, readAgain, "memory was waited for", "events are lost in a gap, as on_gap says",
		rebuilds, sleeps, crash+": of a rebuild", lateDone+": rebuild", lostAnswer+": rebuild",
		lateDone+": swap", "swap answers unheld", rebuiltBehind, dies+": swap",
		"rebuild: swapped", "rebuild: another was under way", "rebuild: ended without a swap", "the operator rebuilds a torn shard",
		throttledEmpty, throttledFull, empties, flaky, sweepHindered,
		lettersDeleted, lettersNoLeader, lettersRefused, lettersMade, lettersGrown,
		goesBack, timeless, beheaded, lacking, readWhole, readLost, readRefilling, readLacking, alikeIDs, sameIDs,
		"accounting compared with the oracle's",
		topicMade, twoTopics,
		bansMember, bansAll, unbans, erases, bansAway, bansEnds, hides, shows, hidesAgain, earnedHidden, earnedErased,
		crash+": ban", lateDone+": ban", lostAnswer+": ban", dies+": ban",
		closes, reopens, sealed, sealedAgain, sealedAfresh, refusedFinal, lateForAll, apartFinal, passedBy,
		crash+": seal", slow+": seal", lateDone+": seal", dies+": seal",
		otherZones, settledByBoth, boundsDiffer,
		electedRunning, electedStopped, electionMended,
		adds, replaces, startOld, night, extends, extendsAgain, extendsApart, beginsWith, haltsWithout, refusesToGo, goesOnWithout,
		addedPartly, addedLacking, addedWhole, addedRebuilt, crash+": extend", lateDone+": extend", lostAnswer+": extend",
		overflown, lacksFields, configure, byOtherRules, repeatsFound, membersCalled,
		severalIn, apart, lagging, masterAway, masterSlow, masterFull, oneGoesBack, oneWiped, backMidway, wipedMidway,
	)
}
