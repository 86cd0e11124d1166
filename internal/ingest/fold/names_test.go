package fold

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	boardrules "github.com/standings/standings/internal/rules"
)

// A member's name in a window is the name from the latest event that counts there; among events of one time,
// the greatest name. Neither the order of the events nor the cutting of the pieces changes this. Redis decides
// which windows still live, and an event that counts in no live window names no member.
func TestPiecesHaveTheNameOfTheLatestEvent(t *testing.T) {
	for name, r := range map[string]*Rules{"one rule": rules(t), "several rules": ruledBoards(t)} {
		r.Names = true
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { namesOfTheLatest(t, r) })
		})
	}
}

func namesOfTheLatest(t *rapid.T, r *Rules) {
	random := source(t)
	members := rapid.SampledFrom([]int{3, 60, 700}).Draw(t, "members")
	b := New(r, new(unbounded), 1<<40)
	b.Reset(0, ledger.Reading{}, ledger.Positions{ledger.At(0)}, ledger.Positions{ledger.At(0)})
	want := map[place]ledger.Name{}
	for i := range rapid.SampledFrom([]int{10, 400, 2000}).Draw(t, "events") {
		e := event(random, members)
		e.Offset = int64(i)
		e.Time -= e.Time % (4 * day) // many have the same time
		if random.IntN(3) > 0 {
			e.Name = fmt.Appendf(nil, "%.*d", 1+random.IntN(200), random.IntN(5))
		}
		if r.Boards != nil {
			e.Boards = append(e.Boards, []byte("arena"), []byte("elo"))
			e.Tuples = append(make([]boardrules.Tuple, len(e.Boards)-2), boardrules.Tuple{1, 1}, boardrules.Tuple{random.Int64N(3)})
		}
		result, err := b.Add(&e)
		if err != nil {
			t.Fatal(err)
		}
		if result != Added || e.Name == nil {
			continue
		}
		for _, board := range e.Boards {
			windows, _, err := r.Windows([][]byte{board}, e.Time, e.RecordTime)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range windows {
				k := place{string(e.User), string(board) + ":" + string(w.Period) + ":" + w.Name}
				if is := want[k]; is.Text == nil || e.Time > is.Time || e.Time == is.Time && string(e.Name) > string(is.Text) {
					want[k] = ledger.Name{Text: e.Name, Time: e.Time}
				}
			}
		}
	}
	b.MoveTo(5000)
	var p Pieces
	cut(&p, b, ledger.Partition{Topic: "points"})
	for piece, _, ok := p.Next(random.IntN(300)); ok; piece, _, ok = p.Next(random.IntN(300)) {
		for _, g := range piece.Groups {
			if len(g.Names) != len(g.Members) {
				t.Fatalf("%d members have %d names", len(g.Members), len(g.Names))
			}
			for i, m := range g.Members {
				for _, n := range g.Windows {
					w := want[place{string(m.ID), piece.Windows[n].Listing()}]
					if string(w.Text) != string(g.Names[i].Text) || w.Time != g.Names[i].Time {
						t.Fatalf("%s is called %q by an event at %d in %s, want %q at %d", m.ID, g.Names[i].Text, g.Names[i].Time, piece.Windows[n].Listing(), w.Text, w.Time)
					}
				}
			}
		}
	}
	b.Release()
	if held := b.Held(); held != 0 {
		t.Fatalf("%d bytes are held of an empty batch", held)
	}
}

// If there is no memory for the name, the event is not added without it.
func TestAnEventIsAddedWithItsNameOrNotAtAll(t *testing.T) {
	r := rules(t)
	r.Names = true
	for limit := int64(0); ; limit += 1 << 10 {
		b := New(r, new(unbounded), limit)
		b.Reset(0, ledger.Reading{}, ledger.Positions{ledger.At(0)}, ledger.Positions{ledger.At(0)})
		e := Event{User: []byte("u"), Hash: Hash([]byte("u")), Name: []byte("Ada"), Boards: [][]byte{[]byte("global")}, Points: 1, Time: border, RecordTime: border}
		result, err := b.Add(&e)
		if err != nil {
			t.Fatal(err)
		}
		if result == Added {
			if b.table.nameOf(0, first).len == 0 {
				t.Fatal("it was added without its name")
			}
			return
		}
		if result != Full || b.Members() != 0 {
			t.Fatalf("with %d bytes: %d, and %d members", limit, result, b.Members())
		}
	}
}
