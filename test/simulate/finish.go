package simulate

// The end of a world: faults stop, everything is let through, an operator does what a
// halt asks for, and time runs until all is quiet.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest"
)

const (
	// quietFor is how long nothing may change until the world is taken to be at rest: an
	// idle worker looks every second.
	quietFor = 4 * time.Second
	// committedIn is within what time offsets that came late are committed over.
	committedIn = 40 * time.Second
	// settlesIn is how long that may take: a halted partition looks again within 10 s,
	// a log that ends too early is believed after 10 s, sessions run out.
	settlesIn = 4 * time.Minute
)

// finish brings the world to its end.
func (w *world) finish() {
	w.letThrough()
	for round := 0; w.failed == ""; round++ {
		if !w.settle() {
			return
		}
		if !w.operate() {
			break
		}
		if round > 4 {
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
	w.kafka.deadLetters.until = time.Time{} // one that was deleted stays so
	for _, p := range w.processes {
		w.reunite(p)
	}
	for _, c := range w.calls {
		c.until = 0
	}
	w.redis.Evict(holdKey)
	if len(w.alive()) == 0 {
		w.launch(w.setup.Processes[0])
	}
}

// settle runs until nothing changes any more: every partition is through, or halted.
func (w *world) settle() bool {
	began, since := time.Now(), time.Now()
	last := ""
	look := max(1, len(w.kafka.partitions)/10) // with many a look costs more than a step
	for steps := 0; w.failed == ""; steps++ {
		w.advance()
		if steps%look > 0 {
			continue
		}
		now := w.standing()
		if now != last {
			last, since = now, time.Now()
		}
		calm := len(w.late) == 0 && !slices.ContainsFunc(w.kafka.partitions, (*partition).stale) && w.dealt() && w.rebuildsEnded()
		if !calm {
			since = time.Now()
		}
		switch {
		case calm && w.through() && time.Since(since) > quietFor && (len(w.uncommitted()) == 0 || time.Since(since) > committedIn):
			return true
		case calm && w.halted() && time.Since(since) > 15*time.Second:
			return true
		case time.Since(began) > settlesIn || steps > 60_000:
			w.failf("it never comes to rest: %s%s", w.standing(), w.members())
		}
	}
	return false
}

// dealt reports whether the group is at rest, with all who live.
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

// lines are what the processes say of their partitions.
func (w *world) lines() map[string]ingest.Line {
	all := map[string]ingest.Line{}
	for _, p := range w.alive() {
		for _, partition := range p.consumer.Snapshot().Partitions {
			all[partition.Field] = partition.Line
		}
	}
	return all
}

// standing is what may change, in words.
func (w *world) standing() string {
	var b strings.Builder
	ledger, lines := w.ledger(), w.lines()
	for _, p := range w.kafka.partitions {
		l := lines[fmt.Sprintf("%s/%d", topic, p.id)]
		fmt.Fprintf(&b, "partition %d: ledger %q, committed %d, log [%d, %d), %s %s %s; ", p.id, ledger[p.id], w.kafka.committed[p.id], p.start, p.stable(), l.State, l.Reason, l.What)
	}
	return b.String()
}

// members are who lives, and who is in the group.
func (w *world) members() string {
	var b strings.Builder
	for _, p := range w.alive() {
		in := p.member != nil && p.member.in
		fmt.Fprintf(&b, "process %d in the group: %v; ", p.id, in)
	}
	return b.String()
}

// through reports whether every ledger stands at its log's end.
func (w *world) through() bool {
	if !w.atEnds() {
		return false
	}
	lines := w.lines()
	for _, p := range w.kafka.partitions { // somebody has it, and works
		if lines[fmt.Sprintf("%s/%d", topic, p.id)].State != ingest.StateRunning {
			return false
		}
	}
	return true
}

// halted reports whether every partition is halted or through, and one is halted.
func (w *world) halted() bool {
	ledger, lines := w.ledger(), w.lines()
	n := 0
	for _, p := range w.kafka.partitions {
		l := lines[fmt.Sprintf("%s/%d", topic, p.id)]
		switch {
		case l.State == ingest.StateHalted:
			n++
		case ledger[p.id] != fmt.Sprint(p.stable()):
			return false
		}
	}
	return n > 0
}

// operate does what the halts ask for, or mends what nobody has met. It reports false
// where there is nothing to do.
func (w *world) operate() bool {
	halts := map[int]string{}
	for _, p := range w.kafka.partitions {
		if l := w.lines()[fmt.Sprintf("%s/%d", topic, p.id)]; l.State == ingest.StateHalted {
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
	gap := slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return halts[p.id] == ingest.HaltGap })
	switch {
	case gap:
		w.tellf("the operator gets back the events that retention took")
		for _, p := range w.kafka.partitions {
			p.start = 0
		}
	case w.damaged && w.tornOnly() && !w.rebuilt: // which may be refused, where the log begins late
		w.tellf("the operator has the boards rebuilt")
		w.count("the operator rebuilds a torn shard")
		w.rebuilt = true
		w.rebuild(w.setup.Processes[0])
	case w.damaged:
		h := w.histories[len(w.histories)-1]
		w.tellf("the operator restores the last backup of Redis, of %.1f s ago", time.Since(h.at).Seconds())
		w.restore(h)
		w.redis.Cut("")
	default:
		return false
	}
	return true
}

// tornOnly reports whether a torn ledger is all that is wrong, and the log is whole: a
// rebuild settles that.
func (w *world) tornOnly() bool {
	torn := false
	for _, text := range w.ledger() {
		torn = torn || strings.HasPrefix(text, "torn:")
	}
	whole := !slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return p.start > 0 })
	return torn && whole && w.counts[evict] == 0
}

// rightly holds what a partition says against what the start table asks for.
func (w *world) rightly(p *partition, reason string) {
	var allowed []string
	must := ""
	all := w.ledger()
	text, there := all[p.id]
	from, to, _ := parse(strings.TrimPrefix(text, "torn:"))
	switch {
	case strings.HasPrefix(text, "torn:"):
		must = ingest.HaltTorn
	case len(all) == 0 && len(w.hash(windowsKey)) > 0:
		must = ingest.HaltOrphaned
	case len(all) > 0 && !w.has(schemaKey):
		must = ingest.HaltSchema
	case there && to > p.stable():
		must = ingest.HaltTruncated
	case there && from < p.start && !w.setup.Continue:
		must = ingest.HaltGap
	case !there && !w.setup.Continue: // of whatever partition it is that begins too late
		allowed = append(allowed, ingest.HaltGap)
	}
	for listing, text := range w.hash(windowsKey) {
		if !w.has(boardKeys+listing) && !w.over(text) {
			allowed = append(allowed, ingest.HaltBoard)
		}
	}
	for _, key := range w.redis.Keys() {
		name := strings.TrimPrefix(key, boardKeys)
		if _, listed := w.hash(windowsKey)[name]; strings.Contains(name, ":") && !listed {
			allowed = append(allowed, ingest.HaltUnlisted)
		}
	}
	switch {
	case must != "" && reason != must && (reason != "" || !w.damaged || !there || to != p.stable()):
		w.failf("partition %d has to be halted as %q, and is %q: %s", p.id, must, reason, w.standing())
	case must == "" && reason != "" && !slices.Contains(allowed, reason):
		w.failf("partition %d is halted as %q, and nothing asks for that: %s", p.id, reason, w.standing())
	}
}

// shut ends all processes, and holds that they end.
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
		if memory := p.consumer.Snapshot().Memory; memory.High >= memory.Limit*3/5 {
			w.count("memory was waited for")
		}
		if used := p.consumer.Snapshot().Memory.Used; used != 0 && w.failed == "" {
			w.failf("process %d has ended and holds %d bytes of the memory to fold in", p.id, used)
		}
	}
}

// hangUp ends what may still be on its way: nobody is there any more.
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
		_ = p.client.Close()
	}
	w.pass(2 * sessionTimeout) // every call has a deadline
	w.redis.Close()
}
