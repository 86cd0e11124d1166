package fold

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
)

// Whatever is sealed, an event counts in the windows in which it would count otherwise, except those that are
// final on its member's shard. It is late if none remains.
func TestAnEventCountsInNoneThatIsSealed(t *testing.T) {
	t.Parallel()
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		random := source(t)
		var all []Event
		for range 300 {
			all = append(all, event(random, 40))
		}
		sealing := &Sealed{}
		batch := New(r, &unbounded{}, 1<<30)
		batch.Leaves(sealing)
		shards := make(ledger.Positions, 1+random.IntN(3))
		final := map[string]int64{} // shard and name → the offset from which it is final
		on := func(shard int, listing string) string { return fmt.Sprint(shard, " ", listing) }
		for range 3 { // each time some more windows are final, or fewer
			some := all[random.IntN(len(all))]
			for _, p := range r.Periods {
				w, _, _ := p.Rule.At(some.Time)
				one := ledger.Window{Board: string(some.Boards[0]), Period: string(w.Period), Name: w.Name}
				shard := random.IntN(len(shards))
				name := on(shard, one.Listing())
				if from, known := 1+random.Int64N(300), final[name]; random.IntN(3) > 0 {
					sealing.Add(shard, from, one)
					if final[name] = from; known > 0 {
						final[name] = min(known, from)
					}
				} else {
					sealing.Remove(shard, one)
					delete(final, name)
				}
			}
			batch.Reset(0, shards.Next(), shards, shards)
			want, got := naive{}, naive{}
			for i, e := range all {
				e.Offset = int64(i)
				without := e
				result := Late
				for _, p := range r.Periods { // one window at a time
					only := Rules{Periods: []Period{p}}
					w, _, _ := p.Rule.At(e.Time)
					without.Boards = nil
					for _, b := range e.Boards {
						name := on(ledger.Shards(len(shards)).Of(e.Hash), string(b)+":"+string(w.Period)+":"+w.Name)
						if from, ok := final[name]; !ok || e.Offset < from {
							without.Boards = append(without.Boards, b)
						}
					}
					if len(without.Boards) > 0 && want.add(&only, without) == Added {
						result = Added
					}
				}
				left, err := batch.Left(e.Boards, e.Hash, e.Offset, e.Time, e.RecordTime)
				if err != nil || left != (result == Late) {
					t.Fatalf("left %v, %v, and is %v", left, err, result)
				}
				if r, err := batch.Add(&e); err != nil || r != result {
					t.Fatalf("it is %v, %v, want %v", r, err, result)
				}
				batch.MoveTo(int64(i + 1))
			}
			for shard := range shards {
				var p Pieces
				p.Reset(batch, ledger.Partition{}, shard, shards[shard])
				for piece, _, ok := p.Next(100); ok; piece, _, ok = p.Next(100) {
					got.has(piece)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("it comes to %v, want %v", got, want)
			}
			batch.Release()
		}
	})
}

// has adds the changes of a piece.
func (n naive) has(p *ledger.Piece) {
	for _, g := range p.Groups {
		for _, m := range g.Members {
			for _, w := range g.Windows {
				n[place{string(m.ID), p.Windows[w].Listing()}] = ledger.Member{Points: m.Points, Time: m.Time}
			}
		}
	}
}

func TestMoreSealedWindowsThanAreKnownAreFoundAgain(t *testing.T) {
	t.Parallel()
	var s Sealed
	for i := 0; i <= mostSealed; i += 100 {
		var windows []ledger.Window
		for j := range 100 {
			windows = append(windows, ledger.Window{Board: fmt.Sprint("b", j%3), Period: "weekly", Name: fmt.Sprint(i + j)})
		}
		s.Add(i/100%2, 0, windows...)
	}
	if n := len(s.Windows(0)) + len(s.Windows(1)); n == 0 || n > mostSealed {
		t.Fatalf("%d are known", n)
	}
}
