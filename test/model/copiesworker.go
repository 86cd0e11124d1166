package model

// copyCall is a piece, a move without events, or a start. Its events are those between its positions.
type copyCall struct {
	on             bool
	expected, next position
}

// copyLane is what a worker knows of one shard.
type copyLane struct {
	call    copyCall
	at      position
	to      int8 // the end of the batch in hand
	through int8 // the end of the last finished batch
}

// copyWorker applies one partition. Two workers of one partition cover a zombie and a takeover.
type copyWorker struct {
	reads bool // it has read the ledgers
	lanes [shardCount]copyLane
}

type copyResult uint8

const (
	applied copyResult = iota
	elsewhere
	held
)

func (r copyResult) String() string {
	return [...]string{"applied", "it is elsewhere", "it is held"}[r]
}

// execute is apply.lua or start.lua.
func (w *copies) execute(s *copiesState, i, part int, c copyCall) copyResult {
	sh := &s.shards[i]
	if sh.ledger[part] != c.expected {
		return elsewhere
	}
	begins := c.expected == none || c.expected.isPlain() || w.variant == allHeld
	below := sh.hold.target[part].ahead(c.expected) && (w.variant != startHeld || c.expected != none)
	if sh.hold.by != 0 && begins && !below {
		return held
	}
	events := w.between(part, i, c.expected, c.next)
	sh.window[part] = sh.window[part].add(events)
	if w.way != reshards {
		sh.kept = sh.kept.add(events)
		if sh.sealed != sealedNow {
			sh.final = sh.final.add(events)
		}
	}
	sh.ledger[part] = c.next
	return applied
}

// part returns the partition of worker k.
func (w *copies) part(k int) int { return k % len(w.members) }

func (w *copies) workerSteps(s copiesState, k int, out func(copiesState, string)) {
	c := s.workers[k]
	if !c.reads {
		w.readPositions(s, k, out)
		return
	}
	busy := false
	for i, l := range c.lanes {
		if l.call.on {
			busy = true
			w.answerTo(s, k, i, out)
		}
	}
	if busy {
		return
	}
	a, b := c.lanes[0].reached(), c.lanes[1].reached()
	if a == b {
		w.batches(s, k, a, "", out)
	}
	// It reads the ledgers again, to move the shards that lag or because it finds that they have moved.
	s.workers[k] = copyWorker{}
	out(s, w.say("worker %d verifies its ledgers", k))
}

// reached returns the offset before which the worker has nothing left to apply.
func (l *copyLane) reached() int8 { return max(int8(l.at.from()), l.through) }

// answerTo lets a shard execute a worker's call.
func (w *copies) answerTo(s copiesState, k, i int, out func(copiesState, string)) {
	l := &s.workers[k].lanes[i]
	c := l.call
	result := w.execute(&s, i, w.part(k), c)
	what := w.say("worker %d sends shard %d %v to %v: %v", k, i, c.expected, c.next, result)
	switch {
	case result == held && w.variant == waitsInBatch:
	case result != applied || c.expected == none:
		s.workers[k] = copyWorker{} // it drops all that it has folded, and reads again
		out(s, what)
	case c.next.isPlain():
		l.at, l.call, l.through = c.next, copyCall{}, max(l.through, int8(c.next.from()))
		out(s, what)
	default:
		l.at = c.next
		w.send(s, k, []int{i}, what, out)
	}
}

// readPositions is the step of a worker that starts, takes over, or has dropped its work: it starts
// the shards without the partition, finishes sweeps, levels shards, or begins a batch.
func (w *copies) readPositions(s copiesState, k int, out func(copiesState, string)) {
	part := w.part(k)
	c := copyWorker{reads: true}
	a, b := s.shards[0].ledger[part], s.shards[1].ledger[part]
	what := w.say("worker %d reads the ledgers: %v %v", k, a, b)
	at := [shardCount]position{a, b}
	for i, p := range at {
		if p == none {
			c.lanes[i].at = none
			c.lanes[i].call = copyCall{true, none, plain(0)}
			s.workers[k] = c
			out(s, what+w.say(", and starts shard %d", i))
			return
		}
		c.lanes[i] = copyLane{at: p, to: int8(p.end()), through: int8(p.from())}
	}
	var lanes []int
	switch {
	case !a.isPlain() || !b.isPlain():
		for i, p := range at {
			if !p.isPlain() {
				lanes = append(lanes, i)
			}
		}
		if w.variant == lowestFirst && a.isPlain() && a.from() == b.from() && w.between(part, 0, a, plain(b.end())) != 0 {
			c.lanes[0].to, lanes = int8(b.end()), []int{0}
		}
	case a != b:
		behind := 0
		if b < a {
			behind = 1
		}
		c.lanes[behind].to, lanes = int8(max(a.from(), b.from())), []int{behind}
	default:
		s.workers[k] = c
		w.batches(s, k, int8(a.from()), what, out)
		return
	}
	s.workers[k] = c
	w.send(s, k, lanes, what, out)
}

// batches begins a batch that ends at any offset. The worker knows that the shards are level.
func (w *copies) batches(s copiesState, k int, from int8, what string, out func(copiesState, string)) {
	part := w.part(k)
	for to := from + 1; to <= int8(len(w.members[part])); to++ {
		t := s
		var lanes []int
		for i := range t.workers[k].lanes {
			l := &t.workers[k].lanes[i]
			l.through = to
			if w.between(part, i, l.at, plain(int(to))) != 0 { // including the events that the shard lags behind
				l.to, lanes = to, append(lanes, i)
			}
		}
		w.send(t, k, lanes, what+w.say(" worker %d folds [%d, %d)", k, from, to), out)
	}
}

// send makes each lane send its next piece: the rest of the batch, or only its lower hash.
func (w *copies) send(s copiesState, k int, lanes []int, what string, out func(copiesState, string)) {
	if len(lanes) == 0 {
		out(s, what)
		return
	}
	i, part := lanes[0], w.part(k)
	at, to := s.workers[k].lanes[i].at, int(s.workers[k].lanes[i].to)
	to2 := func(next position) {
		t := s
		t.workers[k].lanes[i].call = copyCall{true, at, next}
		w.send(t, k, lanes[1:], what+w.say("; it sends shard %d %v to %v", i, at, next), out)
	}
	if lower := sweeping(at.from(), to, 2); at.isPlain() && w.between(part, i, at, lower) != 0 && w.between(part, i, lower, plain(to)) != 0 {
		to2(lower)
	}
	to2(plain(to))
}

// crash ends a worker; another takes its place. One call of the crashed worker may arrive late.
func (w *copies) crash(s copiesState, k int, out func(copiesState, string)) {
	c := s.workers[k]
	if s.faults.crash == 0 || !c.reads {
		return
	}
	s.faults.crash--
	s.workers[k] = copyWorker{}
	out(s, w.say("worker %d crashes", k))
	for i, l := range c.lanes {
		if l.call.on && !s.late.on && w.part(k) == 0 {
			t := s
			t.late, t.lateTo = l.call, int8(i)
			out(t, w.say("worker %d crashes, and its call to shard %d is on its way", k, i))
		}
	}
}
