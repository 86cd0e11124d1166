package simulate

// Worlds that are large in one respect, larger than worlds from seeds.

import (
	"fmt"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// If every idle partition kept the memory of its last batch, many idle partitions would leave no memory
// for reading the next batch.
func TestEverybodyGetsThroughWithManyPartitionsOnASmallBudget(t *testing.T) {
	for _, of := range []struct {
		partitions int
		memory     int64
	}{{fewer(250), 2 << 20}} {
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
		p.first = 2 * of.partitions // the worker reads the later records with the memory that these leave
		for i := p.first; i < len(p.sendings); i++ {
			p.events = append(p.events, fault{at: 300, kind: publish, n: i})
		}
		began := time.Now()
		w := holds(t, p)
		t.Logf("%d partitions: %d steps, %.0f s of the world in %v", of.partitions, w.step, w.lasted.Seconds(), time.Since(began))
	}
}

// starving returns a plan of many partitions and a small memory budget. Every other partition contains
// malformed events among valid ones.
func starving() *plan {
	const partitions = 32
	p := small()
	p.setup.Partitions, p.setup.Processes = partitions, []size{{foldMemory: 1 << 20, pieceTime: 320 * time.Microsecond}}
	p.setup.FetchBytes = 64 << 10
	p.sendings = nil
	at := beginning.Add(-time.Hour).UnixMilli()
	for partition := range partitions {
		s := sending{partition: partition}
		for i := range 200 {
			s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d-%0150d","points":1,"occurred_at":%d}`, partition, i, at)})
		}
		if partition%2 == 0 {
			s.records = append(s.records, record{time: at, value: []byte("poison")})
		}
		p.sendings = append(p.sendings, s)
	}
	p.first = len(p.sendings)
	return p
}

// others runs the plan while dead letters can't be written. The partitions without malformed events
// must be counted to their end meanwhile.
func others(t *testing.T, p *plan) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, uint64(p.seed))
		w = newWorld(p)
		w.withoutLetters(topic)
		w.launch(p.setup.Processes[0])
		for w.failed == "" {
			w.advance()
			if w.step%10 > 0 {
				continue
			}
			starved := -1
			ledgers := w.ledgers()
			for _, log := range w.kafka.partitions {
				if log.id%2 == 1 && !ledgers.at(log.id, log.stable()) {
					starved = log.id
				}
			}
			if starved < 0 {
				break
			}
			if time.Since(w.began) > 2*time.Minute {
				w.failf("a partition starves while others wait for their dead letters: %d: %s", starved, w.standing())
			}
		}
		w.finish()
		w.shut()
	})
	return w
}

// While a partition's dead letters can't be written, the partition must release the batches that it has
// read. Otherwise the other partitions would have no memory for reading.
func TestWhoWaitsForItsDeadLettersLeavesOthersTheMemory(t *testing.T) {
	w := others(t, starving())
	if w.failed != "" {
		t.Errorf("%s\n  %s", w.failed, strings.Join(w.story, "\n  "))
	}
	if w.counts[lettersNoLeader] < 16 {
		t.Errorf("dead letters were refused %d times", w.counts[lettersNoLeader])
	}
}

// oneTopicHalts returns a plan of two topics and a reader process that shows boards. After Redis loses
// its data, one topic is halted because its log lacks events. The other is read again to its end.
func oneTopicHalts() *plan {
	p := small()
	p.setup.Partitions, p.setup.Second, p.setup.Readers = 1, 1, 1
	const extra, noReconnect = 1, 1 << 8
	p.counted = true
	p.events = []fault{{kind: truncate, n: extra}, {at: 5, kind: wipe, n: noReconnect}, {at: 240, kind: flush}}
	return p
}

func TestBoardsArentShownAsWholeWhileOneOfTwoTopicsHasntBegunAgain(t *testing.T) {
	w := holds(t, oneTopicHalts())
	if w.counts[wipe] != 1 || w.counts["halt: gap"] == 0 {
		t.Errorf("%v\n  %s", w.counts, strings.Join(w.story, "\n  "))
	}
}

// Each event of the second half would open a window of a new board. Existing windows go on counting,
// and the other events become dead letters. No board is counted in part: either all windows of an
// event are open or none.
func TestBoardsByTheThousandAreDeadLettersBeyondTheWindowsThatMayBe(t *testing.T) {
	for n, of := range []struct {
		boards int
		most   int64
		faults []fault
	}{
		{1500, 601, nil},
		{1500, 601, []fault{{at: 40, kind: crash, on: inSweep, n: 1}}},
		{1500, 601, []fault{{at: 30, kind: lateDone, on: "apply", n: 7}}},
	}[:fewer(3)] {
		p, boards, began := small(), of.boards, time.Now()
		p.setup.MaxWindows = of.most
		p.events = of.faults
		p.sendings = nil
		at := beginning.Add(-time.Hour).UnixMilli()
		each := boards / 30
		for i := range 30 {
			s := sending{partition: i % 2}
			for j := range each {
				board := i*each + j
				s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":1,"occurred_at":%d,"board":["b%d"]}`, board, at, board)})
				if j%10 == 0 {
					s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":1,"occurred_at":%d,"board":["b%d"]}`, j, at, board/2)})
				}
			}
			p.sendings = append(p.sendings, s)
		}
		p.first = len(p.sendings)
		w := holds(t, p)
		t.Logf("%d: %d boards, %d dead letters for the limit, %d windows, in %v", n, boards, w.counts[windowLimit], len(w.shards[0].hash(windowsKey)), time.Since(began))
		if w.counts[windowLimit] < boards/2 || int64(len(w.shards[0].hash(windowsKey))) < of.most-of.most/10-2 {
			t.Errorf("%d dead letters, %d windows", w.counts[windowLimit], len(w.shards[0].hash(windowsKey)))
		}
	}
}
