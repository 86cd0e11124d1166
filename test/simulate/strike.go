package simulate

// This file applies faults to calls: a call is cut, refused or answered with an error code, or its process
// crashes.

import (
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/test/simulate/redissim"
)

// strike applies a fault to a call.
func (w *world) strike(f fault, c *call) {
	where := ": " + c.kind
	c.from.struck = true
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
		if p := w.kafka.partitions[c.partition]; c.offset < p.stable() { // the answer contains records
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
	case backMidway, wipedMidway:
		w.midway(f, c)
	default:
		panic("simulate: no call is struck by " + f.kind)
	}
}

// hurry schedules the next publishing shortly after a hold has expired, and returns the approximate number
// of steps until those records count.
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

// cutCall ends the caller's connection.
func (w *world) cutCall(c *call) {
	if c.command != nil {
		c.reply(redissim.Answer{Cut: true}, nil)
		return
	}
	c.reply(nil, errReset)
}

// ignore never answers a call.
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

// failCode answers with an error code in the response.
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

// crash ends the calling process while it waits for this call. Calls that it has sent may still be
// executed.
func (w *world) crash(f fault, c *call) {
	p := c.from
	at := c.kind
	if c.inSweep() {
		at = "apply, in the middle of a sweep"
	}
	if p.id >= firstRebuild && p.errand == "" {
		at = "of a rebuild"
	}
	w.count(crash + ": " + at)
	w.tellf("process %d crashes, as it waits for: %s", p.id, c.what)
	w.kill(p, f.n)
	if p.id < firstRebuild {
		w.launch(w.another(f.n >> 3))
	}
}

// kill ends a process as SIGKILL does. n decides what happens to its calls in flight.
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

// another returns the size of a new process. It is often smaller, so that it cuts other pieces, or cannot
// hold the rest of the sweep that it continues.
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
