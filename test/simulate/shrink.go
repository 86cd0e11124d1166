package simulate

// This file shrinks failing plans: it removes faults and records as long as the rest still fails in the
// same way.

import "strings"

// shrink returns the smallest failing plan that it finds within a number of runs. run runs a plan's world.
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
		// First remove the last process of the setup, and other small things.
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

// without tries to remove ranges of n items: first halves, then smaller ranges.
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

// kindOf returns the first words of a failure without numbers, so that failures of smaller worlds can be
// compared.
func kindOf(failed string) string {
	words := strings.FieldsFunc(failed, func(r rune) bool { return r == ' ' || r >= '0' && r <= '9' })
	return strings.Join(words[:min(len(words), 4)], " ")
}
