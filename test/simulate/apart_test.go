package simulate

// Plans in which one shard loses data or goes back during a sweep, so that the shards' positions
// differ widely.

import (
	"fmt"
	"strings"
	"testing"
)

// lostMidway returns a plan of three shards. One of them goes back or is wiped while the others are in
// a sweep; a worker then reads the rest of the sweep for the others alone. number (from 0) chooses the
// moment, and when fetches hang afterwards.
func lostMidway(number int) *plan {
	n, later := number*41, number/24
	p := small()
	p.setup.Partitions, p.setup.Shards, p.setup.Masters, p.setup.FetchBytes = 1, 3, 3, 64<<10
	at := beginning.UnixMilli()
	s := sending{}
	for i := range 240 {
		s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":%d,"occurred_at":%d,"board":["eu","us","global"]}`, i, 1+i%7, at-int64(i))})
	}
	for i := range p.sendings {
		p.sendings[i].partition = 0
	}
	p.first = len(p.sendings)
	p.sendings = append(p.sendings, s)
	kind, atOnce := backMidway, 1<<8 // 1<<8: without a new connection
	if n%3 == 0 {
		kind = wipedMidway
	}
	p.events = []fault{{at: 60 + later, kind: publish, n: p.first}, {at: 62 + later, kind: kind, on: inSweep, n: n&^(3<<4) | atOnce}, {at: 300, kind: flush}}
	p.events = append(p.events, fault{at: 65 + later + n%80, kind: silence, on: "fetch"})
	return p
}

func TestAShardThatIsLostInTheMiddleOfASweepIsReadAgainAlone(t *testing.T) {
	apart := 0
	worlds := fewer(24)
	for n := range worlds {
		w := holds(t, lostMidway(n))
		apart += strings.Count(strings.Join(w.story, "\n"), "going on with a sweep")
	}
	if apart < worlds/3 {
		t.Errorf("%d sweeps were gone on with", apart)
	}
}

// narrowly returns the plan of a seed with three shards, in which a process with a smaller fold memory
// takes over a sweep that is too large for it. It returns nil if the seed's plan doesn't fit.
func narrowly(seed int) *plan {
	p := draw(int64(seed) + 1)
	if p.setup.Less == 0 || p.crowded() {
		return nil
	}
	p.setup.Shards, p.setup.Masters, p.setup.Readers = 3, 3, 0
	p.events = withoutRebuilds(p.events)
	return p
}

func (p *plan) crowded() bool { return p.setup.Windows > 0 }
