package model

import (
	"fmt"
	"math/bits"
)

// ruled is one setting to search in which rules change: the member that each record changes under
// each rule, the faults, and the broken part of the protocol.
type ruled struct {
	narrator
	// members is indexed by rule, then by record. Members 1 and 2 are on the first shard, 3 and 4 on the
	// second, in the order of their hashes. 0: under this rule the record changes no member.
	members [ruleCount][]int8
	shards  int // 1 or 2
	workers int // number that believe at once that they own the partition: the first uses rule A, the next rule B
	// beyond: with two shards, the search includes faults for which nothing is promised.
	beyond  bool
	faults  ruledFaults
	variant ruledVariant
}

// ruledFaults limits how often each fault may still happen.
type ruledFaults struct {
	replaced int8 // a worker ends, and a worker with either rule takes its place
	late     int8 // calls on their way at that moment that may be executed later
	rollback int8 // all of Redis goes back
	apart    int8 // one master goes back
	forget   int8 // rule texts are cleaned up
}

// ruledVariant is a part of the protocol of rules that is broken; "" breaks none.
type ruledVariant string

const (
	ownAlways       ruledVariant = "a successor finishes a sweep by its own rules"
	textApart       ruledVariant = "the text of rules is written after the first piece by them"
	levelledByOwn   ruledVariant = "a shard that lags is levelled by the successor's own rules"
	levelledByLast  ruledVariant = "a shard that lags is levelled by the rules that it notes itself"
	leftBehind      ruledVariant = "a shard that has nothing in what is levelled is left where it is"
	wholeUnnoted    ruledVariant = "a batch of one piece notes no rules"
	knownUnnoted    ruledVariant = "rules whose text is kept already aren't noted"
	notedInMemory   ruledVariant = "a sweep brings no text if its worker has read that it is there"
	markNotCompared ruledVariant = "positions are compared without their fingerprints"
	textForgotten   ruledVariant = "texts are cleaned up that something is by"
)

// ruleCount is the number of rules.
const ruleCount = 2

// rule is a rule's fingerprint: 1 to ruleCount, 0 for none.
type rule int8

func (r rule) String() string { return "-AB"[r : r+1] }

// ruledPosition is a position with the fingerprint of its sweep's rule. A plain position has no
// fingerprint.
type ruledPosition struct {
	position
	by rule
}

func plainly(at int) ruledPosition { return ruledPosition{plain(at), 0} }

func (p ruledPosition) String() string {
	if p.by == 0 {
		return p.position.String()
	}
	return fmt.Sprintf("%v#%v", p.position, p.by)
}

// ruledShard is the whole state of one shard.
type ruledShard struct {
	ledger ruledPosition
	noted  rule              // the rule by which the partition is counted
	texts  uint8             // bit r: the text of rule r is stored
	window [ruleCount]counts // per rule, how often each record counts
}

func (sh *ruledShard) has(r rule) bool { return sh.texts>>r&1 == 1 }

// ruledCall is a piece on its way to a shard.
type ruledCall struct {
	on             bool
	expected, next ruledPosition
	events         set
	by             rule
	note           bool // it carries the rule's text
}

// ruledState is one state of the whole model.
type ruledState struct {
	shards  [2]ruledShard
	older   [2]ruledShard // the state that Redis, or a master, may go back to
	olderOf uint8         // bit i: shard i may go back
	workers [2]ruledWorker
	late    [2]ruledCall // calls of replaced workers, one per shard
	faults  ruledFaults
}

func (w *ruled) space() space[ruledState] {
	begin := ruledState{faults: w.faults}
	for k := range w.workers {
		begin.workers[k].own = rule(k + 1)
	}
	return space[ruledState]{
		begin: begin,
		next: func(s ruledState, telling bool, emit func(ruledState, string)) {
			w.telling = telling
			w.next(s, emit)
		},
		wrong: w.wrong,
		done:  w.done,
	}
}

func (w *ruled) records() int { return len(w.members[0]) }

// done reports whether every record counts, in all shards.
func (w *ruled) done(s ruledState) bool {
	for i := range w.shards {
		if s.shards[i].ledger != plainly(w.records()) {
			return false
		}
	}
	return true
}

// of returns the records of [from, end) that, under rule r, change a member of shard i with a hash
// of at least low.
func (w *ruled) of(r rule, i int, from, end, low int) (events set) {
	for e := max(0, from); e < end; e++ {
		if m := int(w.members[r-1][e]); m > 0 && (m-1)/2 == i && (m-1)%2+1 >= low {
			events |= 1 << e
		}
	}
	return events
}

// wrong names a record that does not count exactly once by one of the rules, in all shards that have
// passed it.
func (w *ruled) wrong(s ruledState) string {
	for e := range w.records() {
		counts := false
		for r := rule(1); r <= ruleCount; r++ {
			counts = counts || w.countsBy(&s, e, r)
		}
		if !counts {
			return fmt.Sprintf("record %d counts by no rules alone: %s", e, w.shown(&s, e))
		}
	}
	return ""
}

// countsBy reports whether all changes of a record so far are those of rule r, in the shards whose
// ledgers count the record.
func (w *ruled) countsBy(s *ruledState, e int, r rule) bool {
	for i := range w.shards {
		sh := &s.shards[i]
		at := sh.ledger
		if at.from() <= e && e < at.end() && at.by != r {
			return false // the record's sweep uses the other rule
		}
		passed := e < at.from() || e < at.end() && w.of(r, i, e, e+1, at.hash()) == 0
		for other := rule(1); other <= ruleCount; other++ {
			want := counts(0)
			if other == r && passed && w.of(r, i, e, e+1, 0) != 0 {
				want = 1
			}
			if sh.window[other-1]>>(2*e)&3 != want {
				return false
			}
		}
	}
	return true
}

// shown describes how often a record counts in each shard, per rule.
func (w *ruled) shown(s *ruledState, e int) (all string) {
	for i := range w.shards {
		all += fmt.Sprintf(" shard %d at %v:", i, s.shards[i].ledger)
		for r := rule(1); r <= ruleCount; r++ {
			all += fmt.Sprintf(" %d times by %v", s.shards[i].window[r-1]>>(2*e)&3, r)
		}
	}
	return all[1:]
}

// next emits every state that can follow s.
func (w *ruled) next(s ruledState, out func(ruledState, string)) {
	for k := range w.workers {
		w.workerSteps(s, k, out)
	}
	for i := range w.shards {
		if c := s.late[i]; c.on {
			t := s
			t.late[i] = ruledCall{}
			w.execute(t, i, c, func(t ruledState, what string) { out(t, what+", late") }, func(*ruledState, bool) {})
		}
		w.forget(s, i, out)
	}
	w.goBack(s, out)
}

// goBack emits the save and the return of an earlier state, for all of Redis or for one shard's master.
func (w *ruled) goBack(s ruledState, out func(ruledState, string)) {
	const all = 1<<2 - 1
	if s.olderOf != 0 {
		t := s
		for i := range t.shards {
			if s.olderOf>>i&1 == 1 {
				t.shards[i] = s.older[i]
			}
		}
		if w.shards > 1 && !w.beyond { // calls on their way are lost then
			t.late = [2]ruledCall{}
			for k := range t.workers {
				t.workers[k] = ruledWorker{own: s.workers[k].own}
			}
		}
		t.older, t.olderOf = [2]ruledShard{}, 0
		out(t, w.say("what was saved comes back: %v %v", t.shards[0].ledger, t.shards[1].ledger))
		return
	}
	if s.faults.rollback > 0 {
		t := s
		t.faults.rollback--
		t.older, t.olderOf = s.shards, all
		out(t, "Redis saves itself")
	}
	for i := range w.shards {
		if s.faults.apart > 0 {
			t := s
			t.faults.apart--
			t.older[i], t.olderOf = s.shards[i], 1<<i
			out(t, w.say("the master of shard %d saves itself", i))
		}
	}
}

// execute is apply.lua: it compares the ledger, and writes all or nothing.
func (w *ruled) execute(s ruledState, i int, c ruledCall, out func(ruledState, string), answer func(*ruledState, bool)) {
	sh := &s.shards[i]
	what := w.say("shard %d, at %v, is sent %v to %v with %v by %v", i, sh.ledger, c.expected, c.next, c.events, c.by)
	if sh.ledger != c.expected && (w.variant != markNotCompared || sh.ledger.position != c.expected.position) {
		answer(&s, false)
		out(s, what+": it is elsewhere")
		return
	}
	sh.ledger = c.next
	sh.window[c.by-1] = sh.window[c.by-1].add(c.events)
	if c.note && w.variant == textApart {
		t := s
		answer(&t, true)
		out(t, what+", and the text isn't written")
	}
	if c.note {
		if sh.noted != 0 && sh.noted != c.by && w.shards > 1 && !w.beyond {
			s.older, s.olderOf = [2]ruledShard{}, 0 // nothing goes back past a change of rules
		}
		sh.noted, sh.texts = c.by, sh.texts|1<<c.by
		what += w.say(", with the text of %v", c.by)
	}
	answer(&s, true)
	out(s, what)
}

// forget cleans up the texts that are neither used in a shard nor the text of the worker's own rule.
func (w *ruled) forget(s ruledState, i int, out func(ruledState, string)) {
	if s.faults.forget == 0 {
		return
	}
	sh := &s.shards[i]
	for k := range w.workers {
		needed := uint8(1) << s.workers[k].own
		if w.variant != textForgotten {
			needed |= 1<<sh.ledger.by | 1<<sh.noted
		}
		if sh.texts&^needed == 0 {
			continue
		}
		t := s
		t.faults.forget--
		t.shards[i].texts &= needed
		out(t, w.say("a worker by %v cleans up %d texts in shard %d", s.workers[k].own, bits.OnesCount8(sh.texts&^needed), i))
	}
}
