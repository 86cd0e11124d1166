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

// haltPasses is counted where a log seemed to end too early: none does at the end of a
// world, so what halted has to go on by itself.
const haltPasses = "halt: truncated, until the log's end is known again"

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
	for _, p := range w.kafka.partitions {
		if p.misled > 0 {
			w.count(stale)
		}
	}
	if w.truncated.Load() {
		w.count(haltPasses)
	}
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
	synctest.Wait()
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
	w.mu.Lock()
	defer w.mu.Unlock()
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
		if f.meets(c) && f.at <= w.step {
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
	w.reads(c)
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
		w.notef("process %d: %s: held again", c.from.id, c.what)
	case c.kind == "apply" || c.kind == "begin" || c.kind == "produce" || c.kind == "commit" || err != nil:
		w.tellf("process %d: %s: %s", c.from.id, c.what, outcome)
	case c.kind == "swap" || c.kind == "rebuild" && c.writes:
		w.tellf("rebuild %d: %s: %s", c.from.id, c.what, outcome)
	default:
		w.notef("process %d: %s: %s", c.from.id, c.what, outcome)
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
		w.tellf("what process %d had sent long ago is done now: %s", d.c.from.id, d.c.what)
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
		w.tellf("process %d: %s: the connection is cut, and nothing done", c.from.id, c.what)
		w.count(f.kind + where)
		w.cutCall(c)
	case lostAnswer:
		if c.writes {
			w.unknown = true
		}
		w.tellf("the answer is lost of what process %d asks now:", c.from.id)
		w.count(f.kind + where)
		w.carryOut(c, redissim.Fault{}, true)
		if f.n%2 == 0 {
			w.cutCall(c)
		} else {
			w.ignore(c)
		}
	case cutMidway:
		w.tellf("the connection is cut in the middle of the answer to what process %d asks now:", c.from.id)
		if p := w.kafka.partitions[c.partition]; c.offset < p.stable() { // there is something in it
			w.count(f.kind)
		}
		c.short = 1 + f.n%(shortOf-1)
		w.carryOut(c, redissim.Fault{}, false)
	case silence:
		w.tellf("process %d: %s: isn't done, and nobody answers", c.from.id, c.what)
		w.count(f.kind + where)
		w.ignore(c)
	case lateDone:
		w.unknown = true
		w.tellf("process %d: %s: gets lost on the way, for a while", c.from.id, c.what)
		w.late = append(w.late, delayed{c, w.step + 5 + f.n%60, meeting(f.n >> 6)})
		w.ignore(c)
	case slow:
		w.tellf("process %d: %s: takes its time", c.from.id, c.what)
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

// hurry has what is to be published next published after a hold has lapsed, and returns
// the steps until it counts, about.
func (w *world) hurry() int {
	const lapsed, counts = 8, 20 // idle steps of idleFor
	for i := range w.events {
		if e := &w.events[i]; e.kind == publish {
			e.at = min(e.at, w.step+lapsed)
			return counts
		}
	}
	return 0
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
	if c.fails != nil && f.n&64 == 0 {
		w.failCode(f, c)
		return
	}
	code := kafkaErrors[f.n%len(kafkaErrors)]
	switch c.kind {
	case "join", "sync", "commit", "leave", "committed":
		code = groupErrors[f.n%len(groupErrors)]
	}
	w.tellf("process %d: %s: the broker answers %v", c.from.id, c.what, code.Title())
	w.count("Kafka answers an error: " + c.kind)
	c.reply(nil, code)
}

// failCode answers with an error code in the response, as a broker does that was asked
// and can't.
func (w *world) failCode(f fault, c *call) {
	codes := kafkaCodes[c.kind]
	whole := f.n&128 == 0 && wholeCodes[c.kind] != nil
	if whole {
		codes = wholeCodes[c.kind]
	}
	code := codes[f.n>>8%len(codes)]
	w.tellf("process %d: %s: the answer has the error code of %v", c.from.id, c.what, code.Title())
	w.count(errorCode + ": " + c.kind)
	if code == kafka.NotEnoughReplicasAfterAppend {
		w.count(errorCode + ", and it was done")
		w.unknown = true
		w.carryOut(c, redissim.Fault{}, true)
	}
	w.mu.Lock()
	answer := c.fails(code, whole)
	w.mu.Unlock()
	c.reply(answer, nil)
}

// crash ends the process that asks, at this very await point: what it has sent may
// still be done.
func (w *world) crash(f fault, c *call) {
	p := c.from
	at := c.kind
	if c.inSweep() {
		at = "apply, in the middle of a sweep"
	}
	if p.id >= firstRebuild {
		at = "of a rebuild"
	}
	w.count(crash + ": " + at)
	w.tellf("process %d crashes, as it waits for: %s", p.id, c.what)
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
			late := delayed{c, w.step + n>>1%40, meeting(n >> 7)}
			if c.kind == "swap" {
				late = delayed{c, w.step + w.hurry(), ""}
			}
			w.late = append(w.late, late)
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
// pieces, or holds less than the sweep that it takes over.
func (w *world) another(n int) size {
	s := w.setup.Processes[n%len(w.setup.Processes)]
	if w.setup.Less > 0 && n/6%3 > 0 {
		s.foldMemory = w.setup.Less
	}
	switch n / 2 % 3 {
	case 1:
		s.pieceTime = 320 * time.Microsecond
	case 2:
		s.pieceTime = 5 * time.Millisecond
	}
	return s
}
