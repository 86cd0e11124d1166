package model

import (
	"fmt"
	"math/bits"
)

// ruled is one setting to search in which rules change: what each record comes to by each of
// them, the faults, and the part of the protocol that is broken.
type ruled struct {
	narrator
	// members are by rules, and of each record: 1 and 2 are of the first shard, by their hash in it,
	// 3 and 4 of the second; by rules of which it is 0 a record counts for nobody.
	members [ruleCount][]int8
	shards  int // 1 or 2
	workers int // that believe at once that they own the partition: the first goes by A, another by B
	// beyond: with two shards, what isn't promised there happens, too.
	beyond  bool
	faults  ruledFaults
	variant ruledVariant
}

// ruledFaults are how often each may still happen.
type ruledFaults struct {
	replaced int8 // a worker ends, and one of any rules takes its place
	late     int8 // calls on their way then that may be carried out later
	rollback int8 // all of Redis goes back
	apart    int8 // one master goes back
	forget   int8 // texts of rules are cleaned up
}

// ruledVariant is a part of the protocol of rules that is broken, empty for none.
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

// ruleCount is how many rules there are.
const ruleCount = 2

// rule is rules that workers go by, as their fingerprint: 1 to ruleCount, 0 for none.
type rule int8

func (r rule) String() string { return "-AB"[r : r+1] }

// ruledPosition is a position with the fingerprint of the rules that its sweep is by; a plain one
// has none.
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

// ruledShard is all that Redis holds of one shard.
type ruledShard struct {
	ledger ruledPosition
	noted  rule              // what the partition is counted by
	texts  uint8             // of which rules the text is there
	window [ruleCount]counts // by which rules each record counts, and how often
}

func (sh *ruledShard) has(r rule) bool { return sh.texts>>r&1 == 1 }

// ruledCall is a piece on its way to a shard.
type ruledCall struct {
	on             bool
	expected, next ruledPosition
	events         set
	by             rule
	note           bool // the rules come with it
}

// ruledState is everything at one moment.
type ruledState struct {
	shards  [2]ruledShard
	older   [2]ruledShard // what Redis, or a master, may go back to
	olderOf uint8         // which shards may
	workers [2]ruledWorker
	late    [2]ruledCall // of somebody who was replaced, one a shard
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

// done is where every record counts, in all shards.
func (w *ruled) done(s ruledState) bool {
	for i := range w.shards {
		if s.shards[i].ledger != plainly(w.records()) {
			return false
		}
	}
	return true
}

// of are the records of [from, end) that by some rules are of a shard's members with a hash of at
// least low.
func (w *ruled) of(r rule, i int, from, end, low int) (events set) {
	for e := max(0, from); e < end; e++ {
		if m := int(w.members[r-1][e]); m > 0 && (m-1)/2 == i && (m-1)%2+1 >= low {
			events |= 1 << e
		}
	}
	return events
}

// wrong says which record doesn't count by one of the rules, once, in all shards that have come
// past it.
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

// countsBy reports whether all that a record has changed so far is what it comes to by some rules,
// as far as the ledgers say that it counts.
func (w *ruled) countsBy(s *ruledState, e int, r rule) bool {
	for i := range w.shards {
		sh := &s.shards[i]
		at := sh.ledger
		if at.from() <= e && e < at.end() && at.by != r {
			return false // its sweep ends by others
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

// shown is how often a record counts in each shard, by which rules.
func (w *ruled) shown(s *ruledState, e int) (all string) {
	for i := range w.shards {
		all += fmt.Sprintf(" shard %d at %v:", i, s.shards[i].ledger)
		for r := rule(1); r <= ruleCount; r++ {
			all += fmt.Sprintf(" %d times by %v", s.shards[i].window[r-1]>>(2*e)&3, r)
		}
	}
	return all[1:]
}

// next emits all that can happen in a state.
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

// goBack is all of Redis, or the master of one shard, in an earlier state.
func (w *ruled) goBack(s ruledState, out func(ruledState, string)) {
	const all = 1<<2 - 1
	if s.olderOf != 0 {
		t := s
		for i := range t.shards {
			if s.olderOf>>i&1 == 1 {
				t.shards[i] = s.older[i]
			}
		}
		if w.shards > 1 && !w.beyond { // what is on its way then is lost
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

// execute is apply.lua: it compares, and writes all or nothing.
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

// forget cleans up the texts that nothing in a shard is by, and that aren't of the worker who does.
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
