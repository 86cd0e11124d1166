package simulate

// This file is the driver, which alone acts while every process waits. In one step, it answers one call or
// executes one fault.

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/standings/standings/test/simulate/redissim"
)

// delayed is a write that is executed after its sender has stopped waiting for it.
type delayed struct {
	c    *call
	from int // due from this step on
	// before is the kind of another process's call before which the write is executed, if such a call
	// comes. So it meets a successor in the middle of its own work.
	before string
}

// meeting draws the kind of call before which a late write is executed; usually none.
func meeting(n int) string {
	return [...]string{"", "", "", "state", "position", "fetch", "fetch", "produce", "apply", "apply"}[n%10]
}

// patience is the number of steps for which a late write waits for that call.
const patience = 250

const (
	// latency is the minimum duration of a response. It prevents responses at the same moment, so no two
	// timers are set to the same time.
	latency = 20 * time.Microsecond
	// perWidth is Redis's time per member-window.
	perWidth = 10 * time.Microsecond
	// idleFor is how long the driver sleeps if there are no calls.
	idleFor = 200 * time.Millisecond
)

// haltPasses is counted if a log seemed to end too early. No log does at the end of a world, so the halted
// partition must continue by itself.
const haltPasses = "halt: truncated, until the log's end is known again"

// run drives the world to its end.
func (w *world) run() {
	for _, s := range w.setup.Processes {
		w.launch(s)
		w.pass(latency)
	}
	for range w.setup.Readers {
		w.read()
	}
	const most = 400
	if w.plan.counted {
		w.countFirst(most)
	}
	for w.failed == "" && w.step < most && (len(w.events) > 0 || w.step < 10) {
		w.advance()
	}
	w.finish()
	w.lasted = time.Since(w.began)
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

// countFirst runs until everything in the logs is counted. The number of steps cannot be fixed: which of
// two calls comes first depends on the scheduling of goroutines, which the race detector shuffles.
func (w *world) countFirst(most int) {
	events := w.events
	w.events = nil
	for w.failed == "" && w.step < most && !w.allCounted() {
		w.advance()
	}
	for i := range events {
		events[i].at += w.step
	}
	w.events = events
}

func (w *world) allCounted() bool {
	ledgers := w.ledgers()
	return !slices.ContainsFunc(w.kafka.partitions, func(p *partition) bool { return !ledgers.at(p.id, p.stable()) })
}

// advance makes one step.
func (w *world) advance() {
	synctest.Wait()
	w.admit()
	w.reached()
	w.group.tick(w)
	if said := w.groundless.Load(); said != nil {
		w.failf("%s", *said)
	}
	w.rebuildsEnded()
	w.noteRefusals()
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

// pass lets time pass, plus a few nanoseconds that always differ. Otherwise timers set at different moments
// could expire at the same moment, and chance would decide the order.
func (w *world) pass(d time.Duration) {
	w.passed++
	time.Sleep(d + time.Duration(w.passed*7919%9973))
	synctest.Wait()
}

// idle waits until there is something to do, but not for long.
func (w *world) idle(most time.Duration) {
	w.passed++
	t := time.NewTimer(most + time.Duration(w.passed*7919%9973))
	defer t.Stop()
	select {
	case <-w.stirred:
	case <-t.C:
		w.step++ // so that faults become due even if nothing happens
	}
}

// next returns the first call that has arrived and can be answered.
func (w *world) next() *call {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.taken || c.from.cut || c.until > w.step || c.isHeld() || c.ready != nil && !c.ready() {
			continue
		}
		return c
	}
	return nil
}

// handle answers a call according to the first due fault for its kind.
func (w *world) handle(c *call) {
	for i, f := range w.events {
		if f.meets(c) && f.at <= w.step {
			w.events = slices.Delete(w.events, i, i+1)
			w.strike(f, c)
			return
		}
	}
	if c.shard != nil && w.ails(c) {
		return
	}
	w.carryOut(c, redissim.Fault{}, false)
}

// carryOut executes a call, and answers it unless the answer is lost.
func (w *world) carryOut(c *call, trouble redissim.Fault, lost bool) (struck bool) {
	w.pass(latency + time.Duration(c.width)*perWidth)
	w.reads(c)
	var value any
	var err error
	outcome := "answered"
	if c.command != nil {
		before := w.roomOf(c)
		if c.kind == "swap" {
			c.was = c.shard.ledger()
		}
		r := c.command.Execute(trouble)
		struck = r.Struck
		value = redissim.Answer{Reply: r.Reply}
		outcome = short(r.Reply)
		w.executed(c, r)
		before.held(c)
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

// delayed executes a late write that is due.
func (w *world) delayed() bool {
	for i, d := range w.late {
		if !w.ending && (d.from > w.step || d.before != "" && d.from+patience > w.step && !w.meets(d)) {
			continue
		}
		w.late = slices.Delete(w.late, i, i+1)
		w.tellf("what process %d had sent long ago is done now: %s", d.c.from.id, d.c.what)
		w.count(lateDone + ": " + d.c.kind)
		before := w.counts["apply answers applied"]
		w.belated = true
		w.carryOut(d.c, redissim.Fault{}, true)
		w.belated = false
		if w.counts["apply answers applied"] > before {
			w.count(lateDone + ": apply, which was still in order")
		}
		return true
	}
	return false
}

// meets reports whether the next call is one before which the late write must be executed.
func (w *world) meets(d delayed) bool {
	c := w.next()
	return c != nil && c.from != d.c.from && c.kind == d.before
}

func (w *world) count(kind string) { w.counts[kind]++ }
