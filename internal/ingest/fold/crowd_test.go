package fold

// Hashes with the same first bits, and batches at the limits of their indexes.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
)

// alike returns hashes that are concentrated in a few places, at several scales. Some are equal.
func alike(r *rand.Rand) uint64 {
	hash := uint64(0)
	for shift := 60; shift >= 0; shift -= 4 {
		if r.IntN(3) == 0 {
			hash |= uint64(r.IntN(1<<r.IntN(5))) << shift
		}
	}
	return hash
}

func TestMembersAreFoundAndWalkedInOrderHoweverTheirHashesAreAlike(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		random := source(t)
		var memory unbounded
		b := New(r, &memory, math.MaxInt64)
		reset(b, ledger.At(0), 0)
		tb := &b.table
		hashes := make([]uint64, 1+random.IntN(1500))
		for i := range hashes {
			hashes[i] = alike(random)
		}
		points := make([]int64, len(hashes))
		want := 0
		for range 4 * len(hashes) {
			i := random.IntN(len(hashes))
			e := Event{User: fmt.Appendf(nil, "m%d", i), Hash: hashes[i], Boards: [][]byte{[]byte("global")}, Points: 1, Time: border, RecordTime: border}
			got, err := b.Add(&e)
			if err != nil {
				t.Fatal(err)
			}
			if got == Full {
				of := 0
				for k := range hashes {
					if hashes[k] == hashes[i] && points[k] > 0 {
						of++
					}
				}
				if points[i] > 0 || (of+1)*3 <= maxPerHash {
					t.Fatalf("full with %d members of the hash", of)
				}
				continue
			}
			if points[i] == 0 {
				want++
			}
			points[i]++
		}
		if b.Members() != want {
			t.Fatalf("%d members, want %d", b.Members(), want)
		}
		ordered := []uint64{}
		for i, p := range points {
			at := tb.find(hashes[i], fmt.Appendf(nil, "m%d", i)).at
			if (at >= 0) != (p > 0) || at >= 0 && tb.member(at).points != p {
				t.Fatalf("member %d with %d points is at %d", i, p, at)
			}
			if p > 0 {
				ordered = append(ordered, hashes[i])
			}
		}
		slices.Sort(ordered)
		checkCrowds(t, tb)
		for range 5 {
			from := alike(random)
			if random.IntN(2) == 0 {
				from = hashes[random.IntN(len(hashes))]
			}
			first, _ := slices.BinarySearch(ordered, from)
			w := walk{table: tb}
			w.seek(from)
			for _, hash := range ordered[first:] {
				at := w.peek()
				if at < 0 || tb.member(at).hash != hash {
					t.Fatalf("from %016x: %016x isn't next", from, hash)
				}
				w.next()
			}
			if w.peek() >= 0 {
				t.Fatal("the walk goes on after the last member")
			}
		}
		b.Release()
		if memory.held != 0 {
			t.Fatalf("%d bytes are held after the release", memory.held)
		}
	})
}

// checkCrowds requires that the map can find every member of every crowd.
func checkCrowds(t tester, tb *table) {
	for n := range tb.bucketCount() {
		var chain []int32
		for i := *tb.bucket(n); i != 0; i = tb.member(int(i - 1)).next {
			chain = append(chain, i)
		}
		if len(chain) <= crowd {
			continue
		}
		last, met := uint64(0), map[uint64]bool{}
		for k, i := range chain {
			hash := tb.member(int(i - 1)).hash
			if k == 0 || hash != last {
				if met[hash] || tb.crowds[hash] != i {
					t.Fatalf("bucket %d: the members of %016x aren't together, or not in the map", n, hash)
				}
			}
			last, met[hash] = hash, true
		}
	}
}

// A batch of ids whose hashes have the same first bits costs about as much as any other. If chains were
// searched from their heads, it would cost thousands of times as much.
func TestIdsThatCollideCostAboutWhatOthersDo(t *testing.T) {
	const members = 60_000
	r := rules(t)
	ids := make([][]byte, members)
	for i := range ids {
		ids[i] = fmt.Appendf(nil, "player-%07d", i)
	}
	fold := func(hash func(id []byte) uint64) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			b := New(r, &unbounded{}, math.MaxInt64)
			reset(b, ledger.At(0), 0)
			e := Event{Boards: [][]byte{[]byte("global")}, Points: 1, Time: border, RecordTime: border}
			began := time.Now()
			for range 2 {
				for _, id := range ids {
					e.User, e.Hash = id, hash(id)
					if got, err := b.Add(&e); got != Added || err != nil {
						t.Fatal(got, err)
					}
				}
			}
			var p Pieces
			cut(&p, b, ledger.Partition{Topic: "points"})
			for _, _, ok := p.Next(3000); ok; _, _, ok = p.Next(3000) {
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	others := fold(Hash)
	for name, mask := range map[string]uint64{"40 bits": 1<<24 - 1, "16 bits": 1<<48 - 1} {
		if took := fold(func(id []byte) uint64 { return Hash(id) & mask }); took > 20*others {
			t.Errorf("%s alike: %v, and others %v", name, took, others)
		} else {
			t.Logf("%s alike: %v, and others %v", name, took, others)
		}
	}
}

func TestABatchEndsBeforeItsIndexesDo(t *testing.T) {
	if last := uint64(widest.idChunks-1)*idChunk + idChunk - 1; last > math.MaxUint32 {
		t.Errorf("an id at %d has no number of 32 bits", last)
	}
	if widest.members > math.MaxInt32 || widest.changes > math.MaxInt32 {
		t.Errorf("%+v: an index plus one isn't an int32", widest)
	}
	r := rules(t)
	for name, most := range map[string]bounds{
		"ids":     {members: math.MaxInt32, changes: math.MaxInt32, idChunks: 3},
		"members": {members: 700, changes: math.MaxInt32, idChunks: widest.idChunks},
		"changes": {members: math.MaxInt32, changes: 500, idChunks: widest.idChunks},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			var events []Event
			want := naive{}
			for range 8000 {
				e := event(random, 3000)
				e.User = append(e.User, fmt.Appendf(nil, "%0100d", e.Hash%1000)...)
				e.Hash = Hash(e.User)
				events = append(events, e)
				want.add(r, e)
			}
			b := New(r, &unbounded{}, math.MaxInt64)
			b.table.most = most
			reset(b, ledger.At(0), 0)
			sums, batches := naive{}, 0
			sweep := func() {
				got := naive{}
				collect(t, b, func() int { return 500 }, got)
				for k, m := range got {
					had, ok := sums[k]
					if !ok {
						had.Time = ledger.NoTime
					}
					sums[k] = ledger.Member{Points: had.Points + m.Points, Time: max(had.Time, m.Time)}
				}
				batches++
			}
			for i := range events {
				got, err := b.Add(&events[i])
				if err != nil {
					t.Fatal(err)
				}
				if got == Full {
					b.MoveTo(int64(i))
					sweep()
					reset(b, ledger.At(int64(i)), 0)
					if got, _ = b.Add(&events[i]); got == Full {
						t.Fatal("an empty batch is full")
					}
				}
			}
			b.MoveTo(int64(len(events)))
			sweep()
			if batches < 3 {
				t.Fatalf("%d batches: the bound shows nothing", batches)
			}
			sameSums(t, sums, want)

			// A worker with a smaller limit that takes over such a sweep leaves hashes to further readings.
			b.table.most = bounds{members: most.members/2 + 1, changes: most.changes/2 + 1, idChunks: max(most.idChunks/2, 1)}
			at, got := ledger.Position{From: 0, To: int64(len(events)), Hash: 1}, naive{}
			for readings := 0; at.Sweeping(); readings++ {
				if readings > 100 {
					t.Fatalf("still at %v", at)
				}
				reset(b, at, at.Hash)
				for i := 0; i < len(events); i++ {
					result, err := b.Add(&events[i])
					if err != nil {
						t.Fatal(err)
					}
					if result == Full {
						if !b.Halve() {
							t.Fatal("full, and nothing to leave to another reading")
						}
						i = -1
					}
				}
				b.MoveTo(int64(len(events)))
				_, at = collect(t, b, func() int { return 500 }, got)
			}
			sameSums(t, got, want)
		})
	}
}
