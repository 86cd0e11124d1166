package fold

// The memory that a batch takes compared with what it charges, and the memory that it keeps when it is empty.

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/standings/standings/internal/ledger"
)

// heap returns the heap bytes in use, with empty pools.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// manyBoards folds events on so many boards, each event on a list of several boards, and returns the number of
// events. If both is set, each member also has an event in a second week with more points.
func manyBoards(t *testing.T, b *Batch, boards, each int, both bool) (events int) {
	t.Helper()
	e := Event{Points: 5, RecordTime: border}
	for from := 0; from < boards; from += each {
		e.Boards = e.Boards[:0]
		for n := from; n < min(from+each, boards); n++ {
			e.Boards = append(e.Boards, fmt.Appendf(nil, "board-%07d", n))
		}
		e.User = fmt.Appendf(nil, "player-%07d", from)
		e.Hash = Hash(e.User)
		for _, at := range []int64{border, border + 7*day} {
			e.Time = at
			if r, err := b.Add(&e); r != Added || err != nil {
				t.Fatal(r, err)
			}
			events++
			if !both {
				break
			}
			e.Points++
		}
	}
	return events
}

func TestABatchChargesWhatItTakesAndKeepsNothingOfIt(t *testing.T) {
	const (
		alone = 48 << 10 // the first chunks and maps, and what else the test process allocates
		keeps = 48 << 10
	)
	for _, boards := range []int{1, 40, 1000, 1250, 50_000} {
		for _, each := range []int{1, 8} {
			for _, both := range []bool{false, true} {
				if boards > 10_000 && (testing.Short() || both == (each > 1)) {
					continue // these take seconds
				}
				t.Run(fmt.Sprintf("%d boards, %d an event, two weeks %v", boards, each, both), func(t *testing.T) {
					var memory unbounded
					before := heap()
					b := New(rules(t), &memory, math.MaxInt64)
					var p Pieces
					reset(b, ledger.At(0), 0)
					events := manyBoards(t, b, boards, each, both)
					b.MoveTo(int64(events))
					folded := heap() - before
					if folded > memory.held+alone {
						t.Errorf("%d bytes were folded into, and %d are charged", folded, memory.held)
					}
					cut(&p, b, ledger.Partition{Topic: "points"})
					most, n := int64(0), 0
					for _, _, ok := p.Next(3000); ok; _, _, ok = p.Next(3000) {
						if n%64 == 0 {
							most = max(most, heap()-before)
						}
						n++
					}
					const piece = 1 << 20 // for one piece, whatever the batch
					if most > memory.held+alone+piece {
						t.Errorf("%d bytes were taken while it was cut, and %d are charged", most, memory.held)
					}
					t.Logf("folded %d, cut %d, charged %d: %.2f", folded, most, memory.held, float64(memory.held)/float64(folded))
					p.Release()
					b.Release()
					if memory.held != 0 {
						t.Errorf("%d bytes are charged after the release", memory.held)
					}
					if kept := heap() - before; kept > keeps {
						t.Errorf("%d bytes are kept after the release", kept)
					}
					runtime.KeepAlive(b)
					runtime.KeepAlive(&p)
				})
			}
		}
	}
}
