package simulate

// Worlds that are large in one way, which the seeds' aren't.

import (
	"fmt"
	"testing"
	"time"
)

// An idle partition that kept what its last batch took would, with enough of them, leave
// nobody anything to read the next one with.
func TestEverybodyGetsThroughWithManyPartitionsOnASmallBudget(t *testing.T) {
	for _, of := range []struct {
		partitions int
		memory     int64
	}{{100, 1 << 20}} {
		p := small()
		p.setup.Partitions, p.setup.Processes = of.partitions, []size{{foldMemory: of.memory, pieceTime: 320 * time.Microsecond}}
		p.sendings = nil
		at := beginning.Add(-time.Hour).UnixMilli()
		for round := range 3 {
			for partition := range of.partitions {
				s := sending{partition: partition, codec: int8(1 + (partition+round)%2)}
				for i := range 6 {
					s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":1,"occurred_at":%d}`, partition+i, at)})
				}
				p.sendings = append(p.sendings, s)
			}
		}
		p.first = 2 * of.partitions // who read these reads the others on what they left
		for i := p.first; i < len(p.sendings); i++ {
			p.events = append(p.events, fault{at: 300, kind: publish, n: i})
		}
		began := time.Now()
		w := holds(t, p)
		t.Logf("%d partitions: %d steps, %.0f s of the world in %v", of.partitions, w.step, w.lasted.Seconds(), time.Since(began))
	}
}

// Each event of the second half would open a window of its own, of a board that nobody has
// heard of. What was there goes on counting, the rest is dead letters, and one board isn't
// counted in part: all of an event's windows are open, or none.
func TestBoardsByTheThousandAreDeadLettersBeyondTheWindowsThatMayBe(t *testing.T) {
	const boards, most = 1500, 601
	for n, faults := range [][]fault{nil, {{at: 40, kind: crash, on: inSweep, n: 1}}, {{at: 30, kind: lateDone, on: "apply", n: 7}}} {
		p := small()
		p.setup.MaxWindows = most
		p.events = faults
		p.sendings = nil
		at := beginning.Add(-time.Hour).UnixMilli()
		for i := range boards / 50 {
			s := sending{partition: i % 2}
			for j := range 50 {
				board := i*50 + j
				s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":1,"occurred_at":%d,"board":["b%d"]}`, board, at, board)})
				if j%10 == 0 {
					s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":1,"occurred_at":%d,"board":["b%d"]}`, j, at, board/2)})
				}
			}
			p.sendings = append(p.sendings, s)
		}
		p.first = len(p.sendings)
		w := holds(t, p)
		t.Logf("%d: %d dead letters for the limit, %d windows", n, w.counts[windowLimit], len(w.hash(windowsKey)))
		if w.counts[windowLimit] < boards/2 || len(w.hash(windowsKey)) < most-2 {
			t.Errorf("%d dead letters, %d windows", w.counts[windowLimit], len(w.hash(windowsKey)))
		}
	}
}
