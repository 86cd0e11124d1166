package simulate

// Faults that aren't about a call: what happens to processes, to the group, to the log
// and to Redis itself.

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/standings/standings/test/simulate/redissim"
)

// event has the first fault happen that isn't about a call and is due.
func (w *world) event() bool {
	for i, f := range w.events {
		if f.on != "" || f.at > w.step {
			continue
		}
		w.events = slices.Delete(w.events, i, i+1)
		if w.happen(f) {
			w.count(f.kind)
		}
		return true
	}
	return false
}

// happen reports whether the fault took effect.
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
		if len(w.kafka.partitions) > 4 {
			return false
		}
		n := len(w.kafka.partitions)
		w.kafka.partitions = append(w.kafka.partitions, &partition{id: n})
		w.tellf("partition %d is added", n)
		if w.plan.first > 0 { // so that there is something in it
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
		return false // counted once it has been told to somebody
	case rebuilds:
		if len(w.rebuilds) > 3 {
			return false
		}
		if !w.anythingCounts() { // it would say so, and end
			const until = 200
			if f.at = w.step + 10; f.at < until {
				w.events = append(w.events, f)
			}
			return false
		}
		w.rebuild(w.another(f.n))
	case sleeps:
		for _, r := range w.rebuilds {
			if !r.told && !r.dead && !r.cut {
				w.tellf("rebuild %d is cut off, for longer than its lease", r.id)
				r.cut, r.wakes = true, time.Now().Add(rebuildLease+time.Duration(1+f.n%5000)*time.Millisecond)
				break
			}
		}
		return false // it counts when it wakes: until then it may have ended
	default:
		return w.happenToRedis(f)
	}
	return true
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

// cutSomebody makes a zombie: its calls come through late, and the group gives it up
// while it still believes in its generation.
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
	// It comes back: some time later it is let through again, as a member that was.
	w.events = append(w.events, fault{at: w.step + 20 + f.n%80, kind: reunite, n: p.id})
	return false // it counts once the group has given it up: see reunite
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
		m.current.end() // as its next heartbeat tells
	}
}

// cutLog moves the start of a partition's log: up to what counts, or past it.
func (w *world) cutLog(f fault) bool {
	p := w.kafka.partitions[f.n%len(w.kafka.partitions)]
	text, ok := w.ledger()[p.id]
	if !ok {
		return false
	}
	from, _, _ := parse(strings.TrimPrefix(text, "torn:"))
	to := from
	if f.kind == gapOpens {
		to = min(from+1+int64(f.n>>4%20), p.stable())
	}
	// Retention goes by time: what is from after Redis's clock stays. A rebuild that found
	// nothing of it would take the windows that begin later for empty ones.
	if ahead := p.first(time.Now().Add(min(0, time.Duration(w.skew.Load()))).UnixMilli() + 1); ahead >= 0 {
		to = min(to, ahead)
	}
	to = p.holding(to)
	if to <= p.start || f.kind == gapOpens && to <= from {
		return false
	}
	w.tellf("the log of partition %d begins at offset %d now; its ledger stands at %s", p.id, to, text)
	p.start = to
	if to == p.end {
		p.gap = 0 // see holding
	}
	return true
}

// forgets has a new leader lead that doesn't know the log's end, as far as it was counted,
// for a while: for longer than a worker takes it for a mistake, at times.
func (w *world) forgets(n int) {
	p := w.kafka.partitions[n%len(w.kafka.partitions)]
	text, ok := w.ledger()[p.id]
	if !ok || p.stale() {
		return
	}
	from, _, _ := parse(strings.TrimPrefix(text, "torn:"))
	seen := p.before(from)
	if seen >= from {
		return
	}
	lasts := time.Duration(2+n>>4%19) * time.Second
	w.tellf("the leader of partition %d knows of nothing from offset %d on, for %v; its ledger stands at %s", p.id, seen, lasts, text)
	w.mu.Lock()
	p.seen, p.until = seen, time.Now().Add(lasts)
	w.mu.Unlock()
}

// happenToRedis reports whether a fault of Redis itself took effect.
func (w *world) happenToRedis(f fault) bool {
	switch f.kind {
	case rollback:
		h := w.histories[f.n%len(w.histories)]
		now, was, idle := w.redis.Dump(), positions(w.ledger()), w.atEnds()
		w.restore(h)
		w.known = nil // which nothing in Redis tells
		if w.redis.Dump() == now {
			return false
		}
		w.tellf("Redis goes back %.1f s: the ledger is %s", time.Since(h.at).Seconds(), positions(w.ledger()))
		w.reconnects(f.n)
		if positions(w.ledger()) == was {
			return false // what went back was workers' lines, or a rebuild's
		}
		if idle && w.allRead() {
			w.count(rollback + ", and nothing comes after")
		}
	case wipe:
		if len(w.ledger()) == 0 {
			return false
		}
		w.loses()
		w.restore(w.histories[0])
		w.tellf("Redis is wiped")
		w.reconnects(f.n)
	case evict:
		w.known = nil // the ledger may be gone
		keys := w.redis.Keys()
		if len(keys) == 0 {
			return false
		}
		key := keys[f.n%len(keys)]
		// Without the origins nobody knows that a topic wasn't read from its beginning, and
		// a rebuild counts what came before: nothing notices, and nothing could.
		if key == holdKey || strings.Contains(key, "~") || strings.HasSuffix(key, ":origin") || strings.HasSuffix(key, ":workers") {
			return false
		}
		w.damaged, w.evicted[key] = true, true
		w.redis.Evict(key)
		w.tellf("Redis evicts %s", key)
	case hold:
		w.redis.Do("SET", holdKey, "somebody", "PX", fmt.Sprint(1000+f.n%4000))
		w.tellf("somebody holds the boards")
	case clock:
		jump := time.Duration(f.n%(6*3600)-3*3600) * time.Second
		w.skew.Add(int64(jump))
		w.tellf("Redis's clock jumps by %v", jump)
	case leap:
		return w.leaps(f.n)
	case flush:
		if w.redis.FlushScripts() == 0 {
			return false
		}
		w.tellf("Redis forgets its scripts")
	case reunite:
		for _, p := range w.processes {
			if p.id == f.n {
				w.reunite(p)
			}
		}
		return true
	default:
		panic("simulate: nothing happens by " + f.kind)
	}
	return true
}

// leaps reports whether the clock went over the end of a listed window's life. It does so
// once: what is gone then doesn't come back.
func (w *world) leaps(n int) bool {
	if w.leapt {
		return false
	}
	w.leapt = true
	lived := w.living()
	jump := time.Duration(15+n%76)*day + 12*time.Hour
	w.skew.Add(int64(jump))
	w.tellf("Redis's clock leaps ahead by %v", jump)
	return w.living() < lived
}

// living is the number of listed windows whose life isn't over.
func (w *world) living() (n int) {
	for _, listing := range w.hash(windowsKey) {
		if !w.over(listing) {
			n++
		}
	}
	return n
}

// reconnects cuts everybody's connections to Redis, as a failover does; a dump that was
// restored in place does not.
func (w *world) reconnects(n int) {
	if n>>8&1 == 1 {
		return
	}
	for _, c := range w.calls {
		if c.command != nil && !c.taken {
			c.reply(redissim.Answer{Cut: true}, nil)
		}
	}
	w.redis.Cut("")
	if n>>9&1 == 1 {
		w.refusing.Store(time.Now().Add(time.Duration(n>>10%4000) * time.Millisecond).UnixNano())
		w.tellf("and takes no connections for a while")
	}
}

// refuseDial is asked before a connection to Redis opens.
func (w *world) refuseDial(string) error {
	if time.Now().UnixNano() < w.refusing.Load() {
		w.refusals.Add(1)
		return syscall.ECONNREFUSED
	}
	return nil
}

// atEnds reports whether every ledger stands at its log's end.
func (w *world) atEnds() bool {
	ledger := w.ledger()
	return !slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return ledger[p.id] != fmt.Sprint(p.stable()) })
}

// allRead reports whether all that will be published has been: what comes now is seen by
// who looks without being called.
func (w *world) allRead() bool {
	for _, f := range w.events {
		if f.kind == publish || f.kind == endOpen {
			return false
		}
	}
	return true
}
