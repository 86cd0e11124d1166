package simulate

// The driver: it alone acts while everybody waits. A step is one call that gets its
// answer, or one fault.

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/test/simulate/redissim"
)

// delayed is a write that is carried out later than anybody waits for it.
type delayed struct {
	c    *call
	from int // the step from which it is due
	// before is the kind of call of another process that it comes just before, if any
	// comes: so it meets who took over, who is in the midst of its own.
	before string
}

// meeting is the kind of call that a late one comes just before, by n; mostly none.
func meeting(n int) string {
	return [...]string{"", "", "", "state", "position", "fetch", "fetch", "produce", "apply", "apply"}[n%10]
}

// patience is for how many steps a late call waits for the one that it is to meet.
const patience = 250

const (
	// latency is what an answer takes at least. With it no two answers come at the same
	// time, so that no two timers are set to the same.
	latency = 20 * time.Microsecond
	// perWidth is what Redis takes for a member-window.
	perWidth = 10 * time.Microsecond
	// idleFor is how long the driver sleeps where nobody has anything to ask.
	idleFor = 200 * time.Millisecond
)

// run drives the world to its end.
func (w *world) run() {
	for _, s := range w.setup.Processes {
		w.launch(s)
		w.pass(latency)
	}
	const most = 400
	for w.failed == "" && w.step < most && (len(w.events) > 0 || w.step < 10) {
		w.advance()
	}
	w.finish()
	w.shut()
}

// advance makes one step.
func (w *world) advance() {
	synctest.Wait()
	w.admit()
	w.group.tick(w)
	w.rebuildsEnded()
	w.admit()
	if w.event() || w.delayed() {
		w.step++
		w.pass(latency)
		return
	}
	if c := w.next(); c != nil {
		w.step++
		w.handle(c)
		return
	}
	w.idle(idleFor)
}

// pass lets some time go by, and a few nanoseconds more, never the same: timers that were
// set at different moments then don't end at the same, where chance would say which goes
// first.
func (w *world) pass(d time.Duration) {
	w.passed++
	time.Sleep(d + time.Duration(w.passed*7919%9973))
}

// idle waits until something stirs, but not for long.
func (w *world) idle(most time.Duration) {
	w.passed++
	t := time.NewTimer(most + time.Duration(w.passed*7919%9973))
	defer t.Stop()
	select {
	case <-w.stirred:
	case <-t.C:
		w.step++ // so that faults come due where nothing happens
	}
}

// next is the call whose turn it is: the first that came and can be answered.
func (w *world) next() *call {
	for _, c := range w.calls {
		if c.taken || c.from.cut || c.until > w.step || c.ready != nil && !c.ready() {
			continue
		}
		return c
	}
	return nil
}

// handle answers a call, as the first fault that is due for its kind says.
func (w *world) handle(c *call) {
	for i, f := range w.events {
		if f.on == c.kind && f.at <= w.step {
			w.events = slices.Delete(w.events, i, i+1)
			w.strike(f, c)
			return
		}
	}
	w.carryOut(c, redissim.Fault{}, false)
}

// carryOut does what a call asks, and answers unless that is lost.
func (w *world) carryOut(c *call, trouble redissim.Fault, lost bool) (struck bool) {
	w.pass(latency + time.Duration(c.width)*perWidth)
	var value any
	var err error
	outcome := "answered"
	if c.command != nil {
		r := c.command.Execute(trouble)
		struck = r.Struck
		value = redissim.Answer{Reply: r.Reply}
		outcome = short(r.Reply)
		w.executed(c, r)
	} else {
		w.mu.Lock()
		value, err = c.do()
		w.mu.Unlock()
		if err != nil {
			outcome = err.Error()
		}
	}
	switch {
	case outcome == "held" && w.held == c.what:
		w.note("process %d: %s: held again", c.from.id, c.what)
	case c.kind == "apply" || c.kind == "begin" || c.kind == "produce" || c.kind == "commit" || err != nil:
		w.tell("process %d: %s: %s", c.from.id, c.what, outcome)
	case c.kind == "rebuild" && c.writes:
		w.tell("rebuild %d: %s: %s", c.from.id, c.what, outcome)
	default:
		w.note("process %d: %s: %s", c.from.id, c.what, outcome)
	}
	w.held = ""
	if outcome == "held" {
		w.held = c.what
	}
	if lost {
		return struck
	}
	c.reply(value, err)
	return struck
}

func short(reply any) string {
	text := fmt.Sprint(reply)
	if list, ok := reply.([]any); ok {
		var words []string
		for _, v := range list {
			words = append(words, fmt.Sprint(v))
		}
		text = strings.Join(words, " ")
	}
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return text
}

// delayed carries out a write that is due, whoever still waits for it.
func (w *world) delayed() bool {
	for i, d := range w.late {
		if !w.ending && (d.from > w.step || d.before != "" && d.from+patience > w.step && !w.meets(d)) {
			continue
		}
		w.late = slices.Delete(w.late, i, i+1)
		w.tell("what process %d had sent long ago is done now: %s", d.c.from.id, d.c.what)
		w.count(lateDone + ": " + d.c.kind)
		before := w.counts["apply answers applied"]
		w.carryOut(d.c, redissim.Fault{}, true)
		if w.counts["apply answers applied"] > before {
			w.count(lateDone + ": apply, which was still in order")
		}
		return true
	}
	return false
}

// meets reports whether the next call is one that the late one is to come before.
func (w *world) meets(d delayed) bool {
	c := w.next()
	return c != nil && c.from != d.c.from && c.kind == d.before
}

func (w *world) count(kind string) { w.counts[kind]++ }

// strike has a fault meet a call.
func (w *world) strike(f fault, c *call) {
	where := ": " + c.kind
	switch f.kind {
	case cutBefore:
		w.tell("process %d: %s: the connection is cut, and nothing done", c.from.id, c.what)
		w.count(f.kind + where)
		w.cutCall(c)
	case lostAnswer:
		if c.writes {
			w.unknown = true
		}
		w.tell("the answer is lost of what process %d asks now:", c.from.id)
		w.count(f.kind + where)
		w.carryOut(c, redissim.Fault{}, true)
		if f.n%2 == 0 {
			w.cutCall(c)
		} else {
			w.ignore(c)
		}
	case silence:
		w.tell("process %d: %s: isn't done, and nobody answers", c.from.id, c.what)
		w.count(f.kind + where)
		w.ignore(c)
	case lateDone:
		w.unknown = true
		w.tell("process %d: %s: gets lost on the way, for a while", c.from.id, c.what)
		w.late = append(w.late, delayed{c, w.step + 5 + f.n%60, meeting(f.n >> 6)})
		w.ignore(c)
	case slow:
		w.tell("process %d: %s: takes its time", c.from.id, c.what)
		w.count(f.kind + where)
		c.until = w.step + 1 + f.n%12
	case refused:
		w.refuse(f, c)
	case dies:
		if w.carryOut(c, redissim.Fault{DieAt: 1 + f.n%12}, false) {
			w.count(f.kind + where)
		}
	case crash:
		w.crash(f, c)
	default:
		panic("simulate: no call is struck by " + f.kind)
	}
}

// cutCall has the caller see its connection end.
func (w *world) cutCall(c *call) {
	if c.command != nil {
		c.reply(redissim.Answer{Cut: true}, nil)
		return
	}
	c.reply(nil, errReset)
}

// ignore leaves the caller without an answer.
func (w *world) ignore(c *call) {
	if c.command != nil {
		c.reply(redissim.Answer{Lost: true}, nil)
		return
	}
	c.taken = true
}

func (w *world) refuse(f fault, c *call) {
	if c.server == ofRedis {
		t := troubles[f.n%len(troubles)]
		if w.carryOut(c, t.fault, false) {
			w.count("Redis answers " + t.name)
		}
		return
	}
	code := kafkaErrors[f.n%len(kafkaErrors)]
	switch c.kind {
	case "join", "sync", "commit", "leave", "committed":
		code = groupErrors[f.n%len(groupErrors)]
	}
	w.tell("process %d: %s: the broker answers %v", c.from.id, c.what, kafka.Error(code).Title())
	w.count("Kafka answers an error: " + c.kind)
	c.reply(nil, code)
}

// crash ends the process that asks, at this very await point: what it has sent may
// still be done.
func (w *world) crash(f fault, c *call) {
	p := c.from
	at := c.kind
	if c.kind == "apply" && strings.Contains(c.what, "@") {
		at = "apply, in the middle of a sweep"
	}
	if p.id >= firstRebuild {
		at = "of a rebuild"
	}
	w.count(crash + ": " + at)
	w.tell("process %d crashes, as it waits for: %s", p.id, c.what)
	w.kill(p, f.n)
	if p.id < firstRebuild {
		w.launch(w.another(f.n >> 3))
	}
}

// kill ends a process as SIGKILL does. n says what becomes of what it has sent.
func (w *world) kill(p *process, n int) {
	w.unknown = true
	w.mu.Lock()
	p.dead = true
	if p.member != nil {
		p.member.expires = time.Now().Add(sessionTimeout)
	}
	w.mu.Unlock()
	for _, c := range w.calls {
		if c.from != p || c.taken {
			continue
		}
		if c.writes && n&1 == 1 {
			w.late = append(w.late, delayed{c, w.step + n>>1%40, meeting(n >> 7)})
		}
		if c.command != nil {
			c.reply(redissim.Answer{Cut: true}, nil)
		} else {
			c.reply(nil, errDead)
		}
	}
	p.end()
}

// another is the size of a process to come: often a smaller one, which cuts other
// pieces.
func (w *world) another(n int) size {
	s := w.setup.Processes[n%len(w.setup.Processes)]
	switch n / 2 % 3 {
	case 1:
		s.pieceTime = 320 * time.Microsecond
	case 2:
		s.pieceTime = 5 * time.Millisecond
	}
	return s
}

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
		w.tell("%d records are published to partition %d", len(s.records), s.partition)
		return len(s.records) > 0
	case endOpen:
		return w.endTransactions(f.n)
	case stop:
		if len(alive) == 0 {
			return false
		}
		p := alive[f.n%len(alive)]
		w.tell("process %d is told to stop, and another comes", p.id)
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
		w.tell("the group is dealt out anew")
		w.mu.Lock()
		w.group.rebalance()
		w.mu.Unlock()
	case wait:
		w.tell("nobody is answered for a while")
		w.pass(time.Duration(5+f.n%30) * time.Second)
	case grow:
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.kafka.partitions) > 4 {
			return false
		}
		n := len(w.kafka.partitions)
		w.kafka.partitions = append(w.kafka.partitions, &partition{id: n})
		w.tell("partition %d is added", n)
		if w.plan.first > 0 { // so that there is something in it
			s := w.plan.sendings[f.n%w.plan.first]
			s.partition = n
			w.send(&s)
		}
	case truncate, gapOpens:
		return w.cutLog(f)
	case rebuilds:
		if len(w.rebuilds) > 3 {
			return false
		}
		w.rebuild(w.another(f.n))
	case sleeps:
		for _, r := range w.rebuilds {
			if !r.told && !r.dead && !r.cut {
				w.tell("rebuild %d is cut off, for longer than its lease", r.id)
				r.cut = true
				w.events = append(w.events, fault{at: w.step + 20 + f.n%80, kind: reunite, n: r.id})
				return true
			}
		}
		return false
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
		w.tell("%d open transactions end", ended)
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
		w.tell("process %d is cut off from everybody; what it has sent comes late", p.id)
	} else {
		w.tell("process %d loses touch with the group, and doesn't know", p.id)
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
	return true
}

const reunite = "a process that was cut off comes back"

func (w *world) reunite(p *process) {
	if p.dead || !p.deaf {
		return
	}
	w.tell("process %d is let through again", p.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	p.cut, p.deaf = false, false
	m := p.member
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
	if to <= p.start || f.kind == gapOpens && to <= from {
		return false
	}
	w.tell("the log of partition %d begins at offset %d now; its ledger stands at %s", p.id, to, text)
	p.start = to
	return true
}

// happenToRedis reports whether a fault of Redis itself took effect.
func (w *world) happenToRedis(f fault) bool {
	switch f.kind {
	case rollback:
		h := w.histories[f.n%len(w.histories)]
		now := w.redis.Dump()
		w.restore(h)
		if w.redis.Dump() == now {
			return false
		}
		w.damaged = false
		w.tell("Redis goes back %.1f s: the ledger is %s", time.Since(h.at).Seconds(), positions(w.ledger()))
		w.reconnects(f.n)
		if w.allRead() {
			w.count(rollback + ", and nothing comes after")
		}
	case wipe:
		if len(w.ledger()) == 0 {
			return false
		}
		w.restore(w.histories[0])
		w.damaged = false
		w.tell("Redis is wiped")
		w.reconnects(f.n)
	case evict:
		keys := w.redis.Keys()
		if len(keys) == 0 {
			return false
		}
		key := keys[f.n%len(keys)]
		if key == holdKey || strings.Contains(key, "~") || strings.HasSuffix(key, ":workers") {
			return false
		}
		w.damaged = true
		w.redis.Evict(key)
		w.tell("Redis evicts %s", key)
	case hold:
		w.redis.Do("SET", holdKey, "somebody", "PX", fmt.Sprint(1000+f.n%4000))
		w.tell("somebody holds the boards")
	case clock:
		jump := time.Duration(f.n%(6*3600)-3*3600) * time.Second
		w.skew += jump
		w.tell("Redis's clock jumps by %v", jump)
	case flush:
		if w.redis.FlushScripts() == 0 {
			return false
		}
		w.tell("Redis forgets its scripts")
	case reunite:
		for _, p := range w.processes {
			if p.id == f.n {
				w.reunite(p)
			}
		}
		for _, r := range w.rebuilds {
			if r.id == f.n {
				r.cut = false
			}
		}
		return true
	default:
		panic("simulate: nothing happens by " + f.kind)
	}
	return true
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
