package fold

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
)

// A refused member is in no later piece, every other member is in exactly one, and every event is counted with
// one piece, whichever pieces are refused and however often the cutting goes back.
func TestRefusedMembersAreInNoPieceAndTheirEventsAreCountedOnce(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		random := source(t)
		b := New(r, &unbounded{}, math.MaxInt64)
		reset(b, ledger.At(100), 0)
		events := map[string]int64{}
		members := 1 + random.IntN(400)
		for range random.IntN(2000) {
			e := event(random, members)
			if result, err := b.Add(&e); err != nil {
				t.Fatal(err)
			} else if result == Added {
				events[string(e.User)]++
			}
		}
		b.MoveTo(300)
		out, in, counted := map[string]bool{}, map[string]bool{}, int64(0)
		var p Pieces
		cut(&p, b, ledger.Partition{Topic: "points"})
		total := int64(0)
		for _, n := range events {
			total += n
		}
		for {
			piece, n, ok := p.Next(1 + random.IntN(60))
			if !ok {
				break
			}
			if named := refuseSome(t, random.IntN(3), b, piece, events, out); named {
				expected := piece.Expected
				for range random.IntN(3) { // the pieces behind it are checked too
					if behind, _, ok := p.Next(1 + random.IntN(60)); ok {
						refuseSome(t, 1, b, behind, events, out)
					}
				}
				pending := int64(0)
				for m := range out {
					if b.Pending([]byte(m), 100) == ledger.Overflow {
						pending += events[m]
					}
				}
				if pending != b.PendingEvents() {
					t.Fatalf("%d events are pending, and the batch says %d", pending, b.PendingEvents())
				}
				b.Found()
				p.Rewind(expected)
				continue
			}
			refused, inPiece := p.Refused()[ledger.Overflow], int64(0)
			met := map[string]bool{}
			for _, g := range piece.Groups {
				for _, m := range g.Members {
					met[string(m.ID)] = true
				}
			}
			for m := range met {
				if out[m] || in[m] {
					t.Fatalf("%s is in a piece, refused %v, in one before %v", m, out[m], in[m])
				}
				in[m] = true
				inPiece += events[m]
			}
			if inPiece+refused != n {
				t.Fatalf("a piece of %d events has %d, and %d are refused", n, inPiece, refused)
			}
			counted += n
		}
		if counted != total || len(in)+len(out) != len(events) {
			t.Fatalf("%d of %d events, %d and %d of %d members", counted, total, len(in), len(out), len(events))
		}
	})
}

// refuseSome refuses the first members of a piece.
func refuseSome(t *rapid.T, n int, b *Batch, p *ledger.Piece, events map[string]int64, out map[string]bool) (named bool) {
	for _, g := range p.Groups {
		for i := range min(n, len(g.Members)) {
			id := g.Members[i].ID
			if b.Refuse(id, ledger.Overflow) == out[string(id)] {
				t.Fatalf("%s is refused a second time, or not at all", id)
			}
			out[string(id)], named = true, true
			if events[string(id)] == 0 {
				t.Fatalf("%s has no events", id)
			}
		}
	}
	return named
}

func TestAMemberWhomTheBatchDoesNotHaveIsNotRefused(t *testing.T) {
	b := New(rules(t), &unbounded{}, math.MaxInt64)
	reset(b, ledger.At(0), 0)
	if b.Refuse([]byte("u1"), ledger.Overflow) {
		t.Fatal("an empty batch has nobody")
	}
	e := Event{User: []byte("u1"), Hash: Hash([]byte("u1")), Boards: [][]byte{[]byte("global")}, Points: 5, Time: border, RecordTime: border}
	for range 3 {
		if _, err := b.Add(&e); err != nil {
			t.Fatal(err)
		}
	}
	if b.Refuse([]byte("u2"), ledger.Overflow) || !b.Refuse([]byte("u1"), ledger.Overflow) || b.Refuse([]byte("u1"), ledger.Overflow) {
		t.Fatal("u1 is refused once, and u2 never")
	}
	if got := fmt.Sprint(b.Pending([]byte("u1"), 100), b.PendingEvents()); got != "1 3" {
		t.Fatal(got)
	}
	reset(b, ledger.At(9), 0)
	if b.PendingEvents() != 0 {
		t.Fatal("a batch begins without refusals")
	}
}

// If shards have different positions, a batch starts at the lowest one. An event that a shard has already
// counted is never among the events of a refused member.
func TestEventsThatTheShardHadAreNotThoseOfWhomItRefuses(t *testing.T) {
	b := New(rules(t), &unbounded{}, math.MaxInt64)
	at := ledger.Positions{ledger.At(100), ledger.At(107)}
	b.Reset(100, at.Next(), at, at)
	id := []byte("u1")
	if (ledger.Shards(2)).Of(Hash(id)) != 1 {
		id = []byte("u2")
	}
	if shard := (ledger.Shards(2)).Of(Hash(id)); shard != 1 {
		t.Fatalf("%s is of shard %d", id, shard)
	}
	source := rand.New(rand.NewPCG(1, 2))
	for offset, want := range map[int64]Result{106: Repeated, 107: Added, 110: Added} {
		e := event(source, 1)
		e.User, e.Hash, e.Offset = id, Hash(id), offset
		if got, err := b.Add(&e); err != nil || got != want {
			t.Fatalf("the event at %d: %v %v", offset, got, err)
		}
	}
	b.MoveTo(120)
	if !b.Refuse(id, ledger.Overflow) {
		t.Fatal("it isn't in the batch")
	}
	found := int64(0)
	for _, offset := range []int64{106, 107, 110} {
		if b.Pending(id, offset) == ledger.Overflow {
			found++
		}
	}
	if want := b.PendingEvents(); found != want || want != 2 {
		t.Errorf("%d events are found, and %d were folded", found, want)
	}
}
