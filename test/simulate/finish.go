package simulate

// This file ends a world: faults stop, all waiting calls are answered, an operator does what a halt asks
// for, and time runs until nothing changes any more.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

const (
	// quietFor is how long nothing may change before the world is considered at rest; an idle worker checks
	// every second.
	quietFor = 4 * time.Second
	// committedIn is the time within which late commits of older offsets are corrected.
	committedIn = 40 * time.Second
	// settlesIn is the limit: a halted partition checks again within 10 s, a log that ends too early is
	// believed after 10 s, and sessions expire.
	settlesIn = 4 * time.Minute
)

// finish brings the world to its end.
func (w *world) finish() {
	w.letThrough()
	w.closesAll()
	w.othersGoOn()
	for round := 0; w.failed == ""; round++ {
		if !w.settle() {
			return
		}
		if !w.operate() && !w.elects() {
			break
		}
		if round > 6+len(w.masters) {
			w.failf("it doesn't come to rest, whatever the operator does")
		}
	}
	if w.failed == "" {
		w.check()
	}
}

// letThrough stops all faults.
func (w *world) letThrough() {
	w.ending = true
	w.tellf("faults stop, and everything is let through")
	for _, f := range w.events {
		if f.kind == publish {
			w.happen(f)
		}
	}
	w.events = nil
	w.endTransactions(0)
	for _, l := range w.kafka.deadLetters {
		l.until = time.Time{} // a deleted topic remains deleted
	}
	w.makes()
	w.endsWithout()
	for _, p := range w.processes {
		w.reunite(p)
	}
	for _, c := range w.calls {
		c.until = 0
	}
	w.mu.Lock() // the followers of the topic read it concurrently
	w.bans.topic.until = time.Time{}
	w.mu.Unlock()
	for _, sh := range w.shards {
		sh.on.redis.Evict(sh.key(holdKey))
		sh.on.outage = outage{}
	}
	for _, p := range w.alive() {
		if len(p.topics) < w.setup.topics() { // as when a new configuration is rolled out
			w.tellf("process %d is told to stop: it doesn't know of all topics", p.id)
			p.stopped = true
			p.end()
		}
	}
	if len(w.alive()) == 0 {
		w.launch(w.setup.Processes[0])
	}
}

// settle runs until nothing changes: every partition is fully counted, or halted.
func (w *world) settle() bool {
	began, since := time.Now(), time.Now()
	last := ""
	look := max(1, len(w.kafka.partitions)/10) // with many partitions a check costs more than a step
	for steps := 0; w.failed == ""; steps++ {
		w.advance()
		if steps%look > 0 {
			continue
		}
		now := w.standing()
		if now != last {
			last, since = now, time.Now()
		}
		calm := len(w.late) == 0 && !slices.ContainsFunc(w.kafka.partitions, (*partition).stale) && w.dealt() && w.rebuildsEnded() && w.inLine()
		if !calm {
			since = time.Now()
		}
		switch {
		case calm && w.through() && w.allFinal() == "" && time.Since(since) > quietFor && (len(w.uncommitted()) == 0 || time.Since(since) > committedIn):
			return true
		case calm && w.halted() && time.Since(since) > 15*time.Second:
			return true
		case time.Since(began) > settlesIn || steps > 60_000:
			w.failf("it never comes to rest: %s%s", w.standing(), w.members())
		}
	}
	return false
}

// dealt reports whether the group is stable and contains all live processes.
func (w *world) dealt() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.group.since.IsZero() {
		return false
	}
	for _, p := range w.processes {
		if !p.dead && !p.stopped && (p.member == nil || !p.member.in) {
			return false
		}
	}
	return true
}

// lines returns the processes' reports on their partitions.
func (w *world) lines() map[string]workers.Line {
	all := map[string]workers.Line{}
	for _, p := range w.alive() {
		for _, partition := range p.consumer.Snapshot().Partitions {
			all[partition.Field] = partition.Line
		}
	}
	return all
}

// standing describes everything that can change.
func (w *world) standing() string {
	var b strings.Builder
	ledgers, lines := w.ledgers(), w.lines()
	for _, p := range w.kafka.partitions {
		l := lines[p.field()]
		fmt.Fprintf(&b, "partition %d: ledger %q, committed %d, log [%d, %d), %s %s %s; ", p.id, ledgers.of(p.id), w.kafka.committed[p.id], p.start, p.stable(), l.State, l.Reason, l.What)
	}
	return b.String() + w.outOfLine() + w.allFinal()
}

// members describes the live processes and the members of the group.
func (w *world) members() string {
	var b strings.Builder
	for _, p := range w.alive() {
		in := p.member != nil && p.member.in
		fmt.Fprintf(&b, "process %d in the group: %v; ", p.id, in)
	}
	return b.String()
}

// through reports whether every ledger is at its log's end and every partition has a running worker.
func (w *world) through() bool {
	if !w.atEnds() {
		return false
	}
	lines := w.lines()
	for _, p := range w.kafka.partitions { // a worker has it, and is running
		if lines[p.field()].State != workers.StateRunning {
			return false
		}
	}
	return true
}

// halted reports whether every partition is halted or fully counted, and at least one is halted.
func (w *world) halted() bool {
	ledgers, lines := w.ledgers(), w.lines()
	n := 0
	for _, p := range w.kafka.partitions {
		l := lines[p.field()]
		switch {
		case l.State == workers.StateHalted:
			n++
		case !ledgers.at(p.id, p.stable()):
			return false
		}
	}
	return n > 0
}

// operate follows the remedies of the halts, or repairs damage that no process has detected. It returns
// false if there is nothing to do.
func (w *world) operate() bool {
	halts := map[int]string{}
	for _, p := range w.kafka.partitions {
		if l := w.lines()[p.field()]; l.State == workers.StateHalted {
			halts[p.id] = l.Reason
		}
	}
	for _, p := range w.kafka.partitions {
		w.rightly(p, halts[p.id])
	}
	if w.failed != "" {
		return false
	}
	for _, reason := range halts {
		w.count("halt: " + reason)
	}
	gap := slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return halts[p.id] == health.HaltGap })
	switch {
	case w.rebuildsElected(halts):
	case w.failed != "":
		return false
	case gap:
		w.tellf("the operator gets back the events that retention took")
		for _, p := range w.kafka.partitions {
			p.start = 0
		}
	case w.dropping != nil:
		w.tellf("the operator drops the rest of the boards, of which a window was dropped in part")
		w.drop(w.dropping)
	case len(w.shards) == 1 && w.damaged() && w.tornOnly() && !w.rebuilt && !w.crowded(): // a late log start allows a refusal
		w.tellf("the operator has the boards rebuilt")
		w.count("the operator rebuilds a torn shard")
		w.rebuilt = true
		w.rebuild(w.setup.Processes[0])
	case w.damaged():
		for _, m := range w.masters {
			if m.damaged {
				h := m.histories[len(m.histories)-1]
				w.tellf("the operator restores the last backup of %s, of %.1f s ago", m.named(), time.Since(h.at).Seconds())
				m.restore(h)
				m.redis.Cut("")
			}
		}
	case w.bordersDiffer():
		w.tellf("the operator removes what differs: all of Redis, which is filled again")
		w.wipes(allMasters(len(w.masters)))
	default:
		return false
	}
	return true
}

// damaged reports whether any master needs an operator's repair.
func (w *world) damaged() bool {
	return slices.ContainsFunc(w.masters, func(m *master) bool { return m.damaged })
}

// tornOnly reports whether torn ledgers are the only damage and the logs are complete, so that a rebuild
// can repair everything.
func (w *world) tornOnly() bool {
	torn := false
	for _, text := range w.shards[0].ledger() {
		torn = torn || strings.HasPrefix(text, "torn:")
	}
	whole := !slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return p.start > 0 })
	return torn && whole && w.counts[evict] == 0
}

// rightly compares a partition's halt with the start table, for every shard.
func (w *world) rightly(p *partition, reason string) {
	var asked, allowed []string
	unmet := true // no process has encountered the cause of the halt
	for _, sh := range w.shards {
		must, may := sh.asks(p)
		allowed = append(allowed, may...)
		if must != "" {
			text := sh.ledger()[p.id]
			_, to, _ := parse(strings.TrimPrefix(text, "torn:"))
			asked, unmet = append(asked, must), unmet && sh.on.damaged && text != "" && to == p.stable()
		}
	}
	switch {
	case len(asked) > 0 && !slices.Contains(asked, reason) && (reason != "" || !unmet):
		w.failf("partition %d has to be halted as %q, and is %q: %s", p.id, asked, reason, w.standing())
	case len(asked) == 0 && reason != "" && !slices.Contains(allowed, reason):
		w.failf("partition %d is halted as %q, and nothing asks for that: %s", p.id, reason, w.standing())
	}
}

// asks returns the reason for which a partition must be halted because of the shard's content, and the
// reasons for which it may be.
func (sh *shard) asks(p *partition) (must string, may []string) {
	all, w := sh.ledger(), sh.w
	text, there := all[p.id]
	from, to, _ := parse(strings.TrimPrefix(text, "torn:"))
	listings := sh.hash(windowsKey)
	switch {
	case strings.HasPrefix(text, "torn:"):
		must = health.HaltTorn
	case len(all) == 0 && len(listings) > 0:
		must = health.HaltOrphaned
	case len(all) > 0 && !sh.exists(schemaKey):
		must = health.HaltSchema
	case there && to > p.stable(), p == w.elected && !p.mended:
		must = health.HaltTruncated
	case there && from < p.start && !w.setup.Continue:
		must = health.HaltGap
	case !there && !w.setup.Continue: // for whichever partition starts too late
		may = append(may, health.HaltGap)
	}
	for listing, text := range listings {
		if sh.lacks(listing, text) && !w.over(text) {
			may = append(may, health.HaltBoard)
			break
		}
	}
	for _, name := range sh.names() {
		if _, listed := listings[strings.TrimSuffix(name, hiddenSuffix)]; strings.Contains(name, ":") && !listed {
			may = append(may, health.HaltUnlisted)
		}
	}
	// After an eviction a process settles a border again, unlike a listed window. In an empty Redis it settles one that
	// differs from an earlier one, and then a master goes back to the earlier one.
	if w.setup.Zones && (sh.evicted[sh.key(bordersKey)] || w.bordersDiffer()) {
		may = append(may, health.HaltBounds)
	}
	return must, may
}

// shut ends all processes, and checks that they end.
func (w *world) shut() {
	w.ending = true
	everybody := slices.Clone(w.processes)
	for _, r := range w.rebuilds {
		everybody = append(everybody, r.process)
	}
	for _, r := range w.readers {
		everybody = append(everybody, r.process)
	}
	for _, p := range everybody {
		p.stopped, p.cut, p.deaf = true, false, false
		p.end()
	}
	for steps := 0; ; steps++ {
		left := slices.DeleteFunc(slices.Clone(everybody), func(p *process) bool {
			select {
			case <-p.done:
				return true
			default:
				return false
			}
		})
		if len(left) == 0 {
			break
		}
		if steps == 20_000 {
			w.failf("process %d doesn't end", left[0].id)
			for _, p := range left {
				w.kill(p, 0)
			}
		}
		if steps > 30_000 {
			panic("simulate: a process doesn't end, killed either")
		}
		w.advance()
	}
	w.hangUp(everybody)
	for kind, n := range w.seen {
		w.counts[kind] += n
	}
	w.counts[refuses] += int(w.refusals.Load())
	for _, p := range w.processes {
		if p.err != nil && w.failed == "" {
			w.failf("process %d ended with: %v", p.id, p.err)
		}
		if memory := p.consumer.Snapshot().Memory; memory.High > 0 && memory.High >= memory.Limit*3/5 {
			w.count("memory was waited for")
		}
		if used := p.consumer.Snapshot().Memory.Used; used != 0 && w.failed == "" {
			w.failf("process %d has ended and holds %d bytes of the memory to fold in", p.id, used)
		}
	}
}

// hangUp ends all remaining calls: no process is left.
func (w *world) hangUp(everybody []*process) {
	w.admit()
	w.mu.Lock()
	for _, p := range everybody {
		p.dead = true
	}
	w.mu.Unlock()
	for _, c := range w.calls {
		w.cutCall(c)
	}
	for _, p := range everybody {
		for _, c := range p.clients {
			_ = c.Close()
		}
	}
	w.pass(2 * sessionTimeout) // longer than the deadline of every call
	for _, m := range w.masters {
		m.redis.Close()
	}
}
