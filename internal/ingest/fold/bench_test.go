package fold

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/standings/standings/internal/ledger"
)

// BenchmarkFold folds events of a million members with Zipf-distributed activity, as players have.
func BenchmarkFold(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 2_000_000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 1_000_000)
			ids := make([][]byte, 1<<16)
			for i := range ids {
				ids[i] = fmt.Appendf(nil, "player-%07d", zipf.Uint64())
			}
			batch := New(rules(b), &unbounded{}, math.MaxInt64)
			e := Event{Boards: [][]byte{[]byte("global")}, Points: 5, Time: border, RecordTime: border}
			reset(batch, ledger.At(0), 0)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if i%size == 0 {
					reset(batch, ledger.At(0), 0)
				}
				e.User = ids[i&(1<<16-1)]
				e.Hash = Hash(e.User)
				if r, err := batch.Add(&e); r != Added || err != nil {
					b.Fatal(r, err)
				}
			}
		})
	}
}

// BenchmarkPieces cuts a batch of 100,000 members into pieces.
func BenchmarkPieces(b *testing.B) {
	const members = 100_000
	batch := New(rules(b), &unbounded{}, math.MaxInt64)
	reset(batch, ledger.At(0), 0)
	for i := range members {
		id := fmt.Appendf(nil, "player-%07d", i)
		e := Event{User: id, Hash: Hash(id), Boards: [][]byte{[]byte("global")}, Points: 5, Time: border, RecordTime: border}
		if r, err := batch.Add(&e); r != Added || err != nil {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(batch.Held())/members, "B/member")
	b.ReportAllocs()
	var p Pieces
	for b.Loop() {
		cut(&p, batch, ledger.Partition{Topic: "points"})
		for _, _, ok := p.Next(3000); ok; _, _, ok = p.Next(3000) {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/members, "ns/member")
}
