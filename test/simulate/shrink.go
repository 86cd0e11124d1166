package simulate

// Shrinking: faults and records are left out of a plan that fails, as long as what is
// left still fails in the same way.

import "strings"

// shrink returns the smallest plan that it finds, within so many runs. run lives a
// plan's world.
func shrink(p *plan, run func(*plan) *world, runs int) (*plan, *world) {
	last := run(p)
	way := kindOf(last.failed)
	fails := func(c *plan) bool {
		if runs--; runs < 0 {
			return false
		}
		w := run(c)
		if w.failed == "" || kindOf(w.failed) != way {
			return false
		}
		p, last = c, w
		return true
	}
	for again := true; again && runs > 0; {
		again = false
		// The last process of the setup, and what small things there are.
		for len(p.setup.Processes) > 1 {
			c := p.clone()
			c.setup.Processes = c.setup.Processes[:1]
			if !fails(c) {
				break
			}
			again = true
		}
		for p.setup.Shards > 1 {
			c := p.clone()
			c.setup.Shards--
			c.setup.Masters = min(c.setup.Masters, c.setup.Shards)
			if !fails(c) {
				break
			}
			again = true
		}
		if p.setup.Less > 0 {
			c := p.clone()
			c.setup.Less = 0
			again = fails(c) || again
		}
		again = without(len(p.events), func(from, to int) bool {
			c := p.clone()
			c.events = append(c.events[:from:from], c.events[to:]...)
			return fails(c)
		}) || again
		for i := range p.sendings {
			again = without(len(p.sendings[i].records), func(from, to int) bool {
				c := p.clone()
				s := &c.sendings[i]
				s.records = append(s.records[:from:from], s.records[to:]...)
				return fails(c)
			}) || again
		}
	}
	return p, last
}

// without tries to leave out stretches of n things: halves first, then ever less.
func without(n int, fails func(from, to int) bool) (some bool) {
	for size := n; size > 0; size /= 2 {
		for from := 0; from+size <= n; {
			if fails(from, from+size) {
				n -= size
				some = true
			} else {
				from += size
			}
		}
	}
	return some
}

// kindOf is the beginning of what is wrong, without numbers: a smaller world is to fail
// in the same way.
func kindOf(failed string) string {
	words := strings.FieldsFunc(failed, func(r rune) bool { return r == ' ' || r >= '0' && r <= '9' })
	return strings.Join(words[:min(len(words), 4)], " ")
}
