package simulate

// This file makes masters unavailable, slow or full for a while, and decides which worlds have several of
// them.

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/standings/standings/test/simulate/redissim"
)

const (
	masterAway = "a master is away"
	masterSlow = "a master is slow"
	masterFull = "a master is full"

	backMidway  = "a master goes back in the middle of a sweep"
	wipedMidway = "a master is wiped in the middle of a sweep"

	oneGoesBack = "of several masters one goes back"
	oneWiped    = "of several masters one is wiped"
	severalIn   = "shards beside each other"
	lagging     = "a shard lags, and is moved"
	apart       = "shards of one partition stand at different places as somebody comes"
)

// outage is a temporary fault of a master.
type outage struct {
	kind  string
	until time.Time
	of    int  // the affected process; 0: all
	drops bool // calls sent during the outage are never executed; otherwise they are executed afterwards
	n     int
}

// shards draws the number of shards from a generator of its own, so that all other draws are the same with
// and without several shards. Rebuilds happen only with one shard.
func (d *drawer) shards(p *plan) {
	d = &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x54a6)), long: d.long, narrow: d.narrow}
	if d.IntN(3) > 0 && (!d.narrow || d.IntN(2) > 0) {
		return
	}
	s := &p.setup
	s.Shards = 2 + d.IntN(4)
	s.Masters, s.Readers = s.Shards, 0
	if d.IntN(3) == 0 {
		s.Masters = 1 + d.IntN(s.Shards)
	}
	p.events = withoutRebuilds(p.events)
	quiet := !slices.ContainsFunc(p.events, func(f fault) bool { return f.kind != publish && f.kind != endOpen })
	if quiet {
		return
	}
	if d.long {
		for range d.IntN(3) {
			p.events = append(p.events, fault{at: d.IntN(80), kind: pick(d, backMidway, backMidway, wipedMidway), on: inSweep, n: d.IntN(1 << 16)})
		}
	}
	for range d.IntN(5) {
		f := fault{at: d.IntN(d.pick(40, 100, 220)), kind: pick(d, masterAway, masterAway, masterSlow, masterFull, rollback, rollback, wipe, dies), n: d.IntN(1 << 16)}
		if f.kind == dies {
			f.on = "apply"
		}
		p.events = append(p.events, f)
	}
}

func withoutRebuilds(all []fault) []fault {
	return slices.DeleteFunc(all, func(f fault) bool {
		return f.kind == rebuilds || f.kind == sleeps || f.on == "rebuild" || f.on == "swap"
	})
}

// midway makes the master of a call go back, or wipes it. The other shards remain in the middle of their
// sweeps, and slow fetches keep the shards apart for a while.
func (w *world) midway(f fault, c *call) {
	m := c.shard.on
	if f.kind == wipedMidway {
		for _, sh := range m.shards {
			sh.loses()
		}
		m.restore(m.histories[0])
		w.tellf("%s is wiped", m.named())
		w.count(wipe)
	} else if m.goesBack(f.n | 1<<8) {
		w.count(rollback)
	}
	m.reconnects(f.n)
	w.count(f.kind)
	for i := range f.n >> 4 % 4 {
		w.events = append(w.events, fault{at: w.step + i*(f.n>>6%8), kind: silence, on: "fetch"})
	}
}

// ail starts an outage. It counts when it takes effect.
func (w *world) ail(f fault) bool {
	m := w.struck(f.n)[0]
	o := outage{kind: f.kind, until: time.Now().Add(time.Duration(200+f.n%7000) * time.Millisecond), drops: f.n>>3&1 == 1, n: f.n}
	if alive := w.alive(); f.kind == masterAway && f.n>>4&3 == 0 && len(alive) > 0 {
		o.of = alive[f.n>>6%len(alive)].id
	}
	m.outage = o
	if f.kind == masterAway {
		w.unknown = true
		if o.of == 0 && f.n>>5&1 == 1 {
			m.refusing.Store(o.until.UnixNano())
		}
	}
	about := ""
	if o.of > 0 {
		about = ", for one process alone"
	}
	w.tellf("%s: %s until %.1f s%s", m.named(), f.kind, o.until.Sub(w.began).Seconds(), about)
	return false
}

// ails reports whether the master of a call is in an outage of a kind.
func (c *call) ails(kind string) bool {
	if c.shard == nil {
		return false
	}
	o := &c.shard.on.outage
	return o.kind == kind && time.Now().Before(o.until) && (o.of == 0 || o.of == c.from.id)
}

// isHeld reports whether a call waits until its master is available again.
func (c *call) isHeld() bool { return c.ails(masterAway) && !c.shard.on.outage.drops }

// delays delays a call to a slow master, each call by a different number of steps.
func (c *call) delays() {
	if c.isHeld() {
		c.shard.w.count(masterAway)
	}
	if c.ails(masterSlow) {
		c.shard.w.count(masterSlow)
		c.until = c.shard.w.step + 1 + (c.number+c.shard.on.outage.n)%9
	}
}

// ails handles a call that meets an outage, and reports whether it did.
func (w *world) ails(c *call) bool {
	switch {
	case c.ails(masterAway): // the call does not reach the master
		w.count(masterAway)
		w.tellf("process %d: %s: is lost, the master is away", c.from.id, c.what)
		w.ignore(c)
		return true
	case c.ails(masterFull) && c.writes:
		if w.carryOut(c, redissim.Fault{Write: redissim.OutOfMemory}, false) {
			w.count(masterFull)
		}
		return true
	}
	return false
}

// isApart reports whether some partition has different positions on different shards.
func (w *world) isApart() bool {
	if len(w.shards) == 1 {
		return false
	}
	ledgers := w.ledgers()
	for _, one := range ledgers[1:] {
		if !maps.Equal(one, ledgers[0]) {
			return true
		}
	}
	return false
}

// noteShards counts the worlds with several shards.
func (w *world) noteShards() {
	if len(w.shards) > 1 {
		w.count(severalIn)
	}
}
