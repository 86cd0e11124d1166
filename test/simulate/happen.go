package simulate

// This file executes the faults that do not concern a call: faults of processes, of the group, of the log
// and of Redis itself.

import (
	"slices"
	"time"
)

// event executes the first due fault that does not concern a call, and reports whether there was one.
func (w *world) event() bool {
	for i, f := range w.events {
		if f.on != "" || f.at > w.step {
			continue
		}
		w.events = slices.Delete(w.events, i, i+1)
		for _, r := range w.rebuilds {
			r.struck = r.struck || f.kind != publish
		}
		if w.happen(f) {
			w.count(f.kind)
		}
		return true
	}
	return false
}

// happen executes a fault, and reports whether it had an effect.
func (w *world) happen(f fault) bool {
	alive := w.alive()
	switch f.kind {
	case publish:
		s := &w.plan.sendings[f.n]
		w.send(s)
		w.tellf("%d records are published to partition %d", len(s.records), s.partition)
		return len(s.records) > 0
	case endOpen:
		return w.endTransactions(f.n)
	case stop:
		if len(alive) == 0 {
			return false
		}
		p := alive[f.n%len(alive)]
		w.tellf("process %d is told to stop, and another comes", p.id)
		p.stopped = true
		p.end()
		w.launch(w.another(f.n >> 3))
	case start:
		if len(alive) > 2 {
			return false
		}
		w.launch(w.another(f.n))
	case cutOff, zombie:
		return w.cutSomebody(f, alive)
	case rebalance:
		if len(w.group.members) == 0 {
			return false
		}
		w.tellf("the group is dealt out anew")
		w.mu.Lock()
		w.group.rebalance()
		w.mu.Unlock()
	case wait:
		w.tellf("nobody is answered for a while")
		w.pass(time.Duration(5+f.n%30) * time.Second)
	case grow:
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.kafka.partitions) > 4+w.setup.Second {
			return false
		}
		of := topics[f.n>>2%w.setup.topics()]
		if of == w.kafka.absent {
			return false
		}
		n := w.kafka.add(of).id
		w.tellf("partition %d is added to %s", n, of)
		if w.plan.first > 0 { // so that the partition is not empty
			s := w.plan.sendings[f.n%w.plan.first]
			s.partition = n
			w.send(&s)
		}
	case truncate, gapOpens:
		return w.cutLog(f)
	case quota, empties, flaky:
		return w.hinder(f)
	case lettersDeleted, lettersNoLeader, lettersRefused:
		return w.away(f)
	case stale:
		w.forgets(f.n)
		return false // counted once a process has been told
	case rebuilds:
		if len(w.rebuilds) > 3+w.errands {
			return false
		}
		if !w.anythingCounts() { // the rebuild would report that, and end
			return w.putsOff(f, 200)
		}
		w.rebuild(w.another(f.n))
	case configure:
		return w.configures(f)
	case topicMade:
		return w.makes()
	case drops, retires:
		if !w.anythingCounts() {
			return false
		}
		w.sendOn(f)
		return false // counted when it has finished
	case sleeps:
		for _, r := range w.rebuilds {
			if !r.told && !r.dead && !r.cut && r.errand == "" {
				w.tellf("rebuild %d is cut off, for longer than its lease", r.id)
				r.struck = true
				r.cut, r.wakes = true, time.Now().Add(rebuildLease+time.Duration(1+f.n%5000)*time.Millisecond)
				break
			}
		}
		return false // it counts when it wakes: it may have ended before
	case closes:
		return w.closes(f.n)
	case reopens:
		return w.reopens(f.n)
	case adds, replaces, startOld, night:
		return w.happensToPeriods(f)
	case bansMember, unbans, erases, bansAway:
		return w.happensToBans(f)
	default:
		return w.happenToRedis(f)
	}
	return true
}

// putsOff postpones a fault, up to a step.
func (w *world) putsOff(f fault, until int) bool {
	if f.at = w.step + 10; f.at < until {
		w.events = append(w.events, f)
	}
	return false
}

func (w *world) endTransactions(n int) bool {
	ended := 0
	for _, p := range w.kafka.partitions {
		ended += p.close(n%2 == 0)
	}
	if ended > 0 {
		w.tellf("%d open transactions end", ended)
	}
	return ended > 0
}

// cutSomebody makes a zombie: its calls arrive late, and the group expels it while it still believes in its
// generation.
func (w *world) cutSomebody(f fault, alive []*process) bool {
	if len(alive) == 0 {
		return false
	}
	p := alive[f.n%len(alive)]
	if p.deaf || p.member == nil {
		return false
	}
	if p.member.current == nil || !p.member.in {
		return false
	}
	w.unknown = true
	w.mu.Lock()
	p.cut, p.deaf = f.kind == cutOff, true
	p.member.expires = time.Now().Add(sessionTimeout / 2)
	w.mu.Unlock()
	if p.cut {
		w.tellf("process %d is cut off from everybody; what it has sent comes late", p.id)
	} else {
		w.tellf("process %d loses touch with the group, and doesn't know", p.id)
	}
	for _, c := range w.calls {
		if p.cut && c.from == p && !c.taken && c.writes && c.command != nil {
			w.late = append(w.late, delayed{c, w.step + f.n>>2%80, meeting(f.n >> 9)})
			w.ignore(c)
		}
	}
	if len(alive) == 1 {
		w.launch(w.another(f.n >> 3))
	}
	// Some time later its connection is restored; it is no longer a member.
	w.events = append(w.events, fault{at: w.step + 20 + f.n%80, kind: reunite, n: p.id})
	return false // counted once the group has expelled it: see reunite
}

const reunite = "a process that was cut off comes back"

func (w *world) reunite(p *process) {
	if p.dead || !p.deaf {
		return
	}
	w.tellf("process %d is let through again", p.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	m := p.member
	switch {
	case m.in:
	case p.cut:
		w.count(cutOff)
	default:
		w.count(zombie)
	}
	p.cut, p.deaf = false, false
	if m.in {
		m.expires = time.Time{}
	}
	if m.current != nil && (!m.in || !w.group.since.IsZero() && !m.waits) {
		m.current.end() // as its next heartbeat reports
	}
}

// cutLog moves the start of a partition's log: up to the ledger's position, or past it.
func (w *world) cutLog(f fault) bool {
	p := w.kafka.partitions[f.n%len(w.kafka.partitions)]
	ledgers := w.ledgers()
	from, ok := ledgers.lowest(p.id)
	if !ok {
		return false
	}
	to := from
	if f.kind == gapOpens {
		to = min(from+1+int64(f.n>>4%20), p.stable())
	}
	// Retention depends on time: records from after Redis's clock remain. A rebuild that found none of them
	// would take later windows for empty.
	if ahead := p.first(time.Now().Add(min(0, time.Duration(w.skew.Load()))).UnixMilli() + 1); ahead >= 0 {
		to = min(to, ahead)
	}
	to = p.holding(to)
	if to <= p.start || f.kind == gapOpens && to <= from {
		return false
	}
	w.tellf("the log of partition %d begins at offset %d now; its ledger stands at %s", p.id, to, ledgers.of(p.id))
	p.start = to
	if f.n>>10%2 == 0 {
		p.blind = time.Now().Add(5 * time.Minute)
	}
	if to == p.end {
		p.gap = 0 // see holding
	}
	return true
}

// forgets elects a leader that does not yet know the log's end, for a while; sometimes for longer than a
// worker considers it an error.
func (w *world) forgets(n int) {
	p := w.kafka.partitions[n%len(w.kafka.partitions)]
	ledgers := w.ledgers()
	from, ok := ledgers.lowest(p.id)
	if !ok || p.stale() {
		return
	}
	seen := p.before(from)
	if seen >= from {
		return
	}
	lasts := time.Duration(2+n>>4%19) * time.Second
	w.tellf("the leader of partition %d knows of nothing from offset %d on, for %v; its ledger stands at %s", p.id, seen, lasts, ledgers.of(p.id))
	w.mu.Lock()
	p.seen, p.until = seen, time.Now().Add(lasts)
	w.mu.Unlock()
}
