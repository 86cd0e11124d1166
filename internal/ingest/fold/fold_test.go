package fold

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// unbounded grants everything and adds up the bytes held.
type unbounded struct{ held int64 }

func (u *unbounded) Take(n int64) bool { u.held += n; return true }
func (u *unbounded) Release(n int64)   { u.held -= n }

// bounded grants up to a limit.
type bounded struct{ held, limit int64 }

func (b *bounded) Take(n int64) bool {
	if b.held+n > b.limit {
		return false
	}
	b.held += n
	return true
}
func (b *bounded) Release(n int64) { b.held -= n }

const day = int64(24 * time.Hour / time.Millisecond)

// border is midnight between two weeks, months and years: 2024-01-01 is a Monday.
var border = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

func rules(t testing.TB) *Rules {
	t.Helper()
	c, err := periods.NewCalendar("UTC", "monday")
	if err != nil {
		t.Fatal(err)
	}
	return new(BuiltIn(c, day, "weekly", "monthly", "yearly"))
}

// naive has what the events add to every member and window.
type place struct{ member, window string }
type naive map[place]ledger.Member

func (n naive) add(r *Rules, e Event) Result {
	result := Late
	for _, p := range r.Periods {
		w, _, _ := p.Rule.At(e.Time)
		if e.RecordTime > w.End+p.Lateness {
			continue
		}
		result = Added
		for _, board := range e.Boards {
			k := place{string(e.User), string(board) + ":" + string(w.Period) + ":" + w.Name}
			m, ok := n[k]
			if !ok {
				m.Time = ledger.NoTime
			}
			m.Points += e.Points
			if e.Points > 0 {
				m.Time = max(m.Time, e.Time)
			}
			n[k] = m
		}
	}
	return result
}

// source returns a random source from a drawn seed: a rapid draw for every field of thousands of events would
// take minutes.
func source(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

func event(r *rand.Rand, members int) Event {
	e := Event{
		User:   fmt.Appendf(nil, "m%d", r.IntN(members)),
		Points: r.Int64N(70) - 20,
		Time:   border + r.Int64N(20*day) - 10*day,
	}
	e.Hash = Hash(e.User)
	e.RecordTime = e.Time + r.Int64N(9*day)
	boards := []string{"global", "eu", "us"}
	r.Shuffle(3, func(i, j int) { boards[i], boards[j] = boards[j], boards[i] })
	for _, b := range boards[:1+r.IntN(3)] {
		e.Boards = append(e.Boards, []byte(b))
	}
	return e
}

// collect cuts the batch into pieces, checks the invariants of each, and adds them up.
func collect(t tester, b *Batch, width func() int, into naive) (events int64, end ledger.Position) {
	t.Helper()
	var p Pieces
	cut(&p, b, ledger.Partition{Topic: "points", Number: 3})
	at := started(b)
	for piece, n, ok := p.Next(width()); ok; piece, n, ok = p.Next(width()) {
		events += n
		if piece.Expected != at {
			t.Fatalf("a piece expects %v after one that wrote %v", piece.Expected, at)
		}
		low, high := at.Hash, uint64(math.MaxUint64)
		if piece.Next.Sweeping() {
			high = piece.Next.Hash - 1
		}
		at = piece.Next
		met := map[place]bool{}
		for _, g := range piece.Groups {
			for _, m := range g.Members {
				if h := Hash(m.ID); h < low || h > high {
					t.Fatalf("member %s with hash %016x in the piece [%016x, %016x]", m.ID, h, low, high)
				}
				for _, w := range g.Windows {
					k := place{string(m.ID), piece.Windows[w].Listing()}
					if met[k] {
						t.Fatalf("%v is met twice in a piece", k)
					}
					met[k] = true
					if _, twice := into[k]; twice {
						t.Fatalf("%v is in two pieces", k)
					}
					into[k] = ledger.Member{Points: m.Points, Time: m.Time}
				}
			}
		}
	}
	return events, at
}

func sameSums(t tester, got, want naive) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d member-windows, want %d", len(got), len(want))
	}
	for k, w := range want {
		if g := got[k]; g.Points != w.Points || g.Time != w.Time {
			t.Fatalf("%v: %d points at %d, want %d at %d", k, g.Points, g.Time, w.Points, w.Time)
		}
	}
}

func TestPiecesAddUpToTheEventsHoweverTheyAreCut(t *testing.T) {
	r := rules(t)
	var memory unbounded
	b := New(r, &memory, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		reset(b, ledger.At(100), 0)
		random := source(t)
		want, added := naive{}, int64(0)
		events := rapid.IntRange(0, 400).Draw(t, "events")
		members := rapid.SampledFrom([]int{3, 40, 1000}).Draw(t, "members")
		for range events {
			e := event(random, members)
			result, err := b.Add(&e)
			if err != nil {
				t.Fatal(err)
			}
			if expected := want.add(r, e); result != expected {
				t.Fatalf("result %v, want %v", result, expected)
			}
			if result == Added {
				added++
			}
		}
		b.MoveTo(100 + int64(events))
		got := naive{}
		n, end := collect(t, b, func() int { return rapid.IntRange(1, 300).Draw(t, "width") }, got)
		if n != added {
			t.Fatalf("%d events in the pieces, %d were added", n, added)
		}
		if end != ledger.At(100+int64(events)) {
			t.Fatalf("the last piece writes %v", end)
		}
		sameSums(t, got, want)
		b.Release()
		if memory.held != 0 {
			t.Fatalf("%d bytes are held after the release", memory.held)
		}
	})
}

// tester is the common part of testing.T and rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestASweepTakenOverAddsWhatIsMissingHoweverLittleMemoryThereIs(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		var events []Event
		random := source(t)
		for range rapid.IntRange(1, 3000).Draw(t, "events") {
			e := event(random, 1<<30)
			events = append(events, e)
		}
		from, to := int64(7), int64(7+len(events))
		want := naive{}
		for i := range events {
			events[i].Offset = from + int64(i)
			want.add(r, events[i])
		}
		// The first owner applies some pieces and stops.
		first := New(r, &unbounded{}, math.MaxInt64)
		reset(first, ledger.At(from), 0)
		for i := range events {
			if _, err := first.Add(&events[i]); err != nil {
				t.Fatal(err)
			}
		}
		first.MoveTo(to)
		got, at := naive{}, started(first)
		var p Pieces
		cut(&p, first, ledger.Partition{Topic: "points"})
		for range rapid.IntRange(1, 5).Draw(t, "pieces") {
			piece, _, ok := p.Next(rapid.IntRange(1, 2000).Draw(t, "width"))
			if !ok {
				break
			}
			for _, g := range piece.Groups {
				for _, m := range g.Members {
					for _, w := range g.Windows {
						got[place{string(m.ID), piece.Windows[w].Listing()}] = ledger.Member{Points: m.Points, Time: m.Time}
					}
				}
			}
			at = piece.Next
		}
		// The next owner has less memory and reads the range as often as necessary.
		memory := &bounded{limit: rapid.Int64Range(120_000, 1_000_000).Draw(t, "memory")}
		taken := at.Hash
		next := New(r, memory, math.MaxInt64)
		for readings := 0; at.Sweeping(); readings++ {
			if readings > 200 {
				t.Fatalf("still at %v after 200 readings", at)
			}
			reset(next, at, taken)
			for i := 0; i < len(events); i++ {
				result, err := next.Add(&events[i])
				if err != nil {
					t.Fatal(err)
				}
				if result == Repeated && events[i].Hash >= taken {
					t.Fatal("an event of this owner's own pieces counts as repeated")
				}
				if result == NoMemory {
					if !next.Halve() {
						t.Fatal("no memory and nothing to leave to another reading")
					}
					i = -1
				}
			}
			next.MoveTo(to)
			_, at = collect(t, next, func() int { return 500 }, got)
		}
		if at != ledger.At(to) {
			t.Fatalf("ended at %v", at)
		}
		sameSums(t, got, want)
		next.Release()
		if memory.held != 0 {
			t.Fatalf("%d bytes are held after the release", memory.held)
		}
	})
}

func TestAMemberOnBothSidesOfAWeeksBorderMeetsEachWindowOnce(t *testing.T) {
	r := rules(t)
	b := New(r, &unbounded{}, math.MaxInt64)
	reset(b, ledger.At(0), 0)
	middle := time.Date(2024, 5, 13, 0, 0, 0, 0, time.UTC).UnixMilli() // a Monday inside a month
	for i, at := range []int64{middle - 1, middle, middle + 5} {
		e := Event{User: []byte("ann"), Hash: Hash([]byte("ann")), Boards: [][]byte{[]byte("global")}, Points: int64(i + 1), Time: at, RecordTime: at}
		if got, err := b.Add(&e); got != Added || err != nil {
			t.Fatal(got, err)
		}
	}
	b.MoveTo(3)
	var p Pieces
	cut(&p, b, ledger.Partition{Topic: "points"})
	piece, _, _ := p.Next(100)
	got := map[string]int64{}
	for _, g := range piece.Groups {
		for _, w := range g.Windows {
			got[piece.Windows[w].Listing()] += g.Members[0].Points
		}
	}
	want := map[string]int64{"global:weekly:2024-W19": 1, "global:weekly:2024-W20": 5, "global:monthly:2024-05": 6, "global:yearly:2024": 6}
	if !maps.Equal(got, want) {
		t.Fatalf("sums %v, want %v", got, want)
	}
	if len(piece.Groups) != 3 {
		t.Fatalf("%d groups, want one of each week and one of month and year", len(piece.Groups))
	}
}

func TestABatchEndsBeforeOneHashPassesAThousandMemberWindows(t *testing.T) {
	r := rules(t)
	b := New(r, &unbounded{}, math.MaxInt64)
	reset(b, ledger.At(0), 0)
	added := 0
	for i := range 1000 {
		e := Event{User: []byte("ann"), Hash: Hash([]byte("ann")), Boards: [][]byte{fmt.Appendf(nil, "b%d", i)}, Points: 1, Time: border, RecordTime: border}
		got, err := b.Add(&e)
		if err != nil {
			t.Fatal(err)
		}
		if got == Full {
			break
		}
		added++
	}
	if added != maxPerHash/3 {
		t.Fatalf("%d boards of three windows were folded, want %d", added, maxPerHash/3)
	}
	// The limit applies to all members of one hash together.
	reset(b, ledger.At(0), 0)
	for i := range 400 {
		e := Event{User: fmt.Appendf(nil, "m%d", i), Hash: 42, Boards: [][]byte{[]byte("global")}, Points: 1, Time: border, RecordTime: border}
		if got, _ := b.Add(&e); (got == Full) != (i >= maxPerHash/3) {
			t.Fatalf("member %d of one hash: %v", i, got)
		}
		if i > maxPerHash/3 {
			break
		}
	}
}

func TestASumThatLeavesTheRangeStaysOutOfIt(t *testing.T) {
	sums := []struct{ a, b, want int64 }{
		{1, 2, 3}, {math.MaxInt64 - 1, 5, beyond}, {math.MinInt64 + 1, -5, beyond},
		{beyond, -100, beyond}, {-100, beyond, beyond}, {math.MinInt64, math.MinInt64, beyond},
	}
	for _, s := range sums {
		if got := addPoints(s.a, s.b); got != s.want {
			t.Errorf("%d + %d = %d, want %d", s.a, s.b, got, s.want)
		}
	}
}

func TestABatchOfNothingIsOnePieceThatMovesThePosition(t *testing.T) {
	b := New(rules(t), &unbounded{}, math.MaxInt64)
	reset(b, ledger.At(5), 0)
	b.MoveTo(9)
	var p Pieces
	cut(&p, b, ledger.Partition{Topic: "points"})
	piece, n, ok := p.Next(100)
	if !ok || n != 0 || piece.Width() != 0 || piece.Expected != ledger.At(5) || piece.Next != ledger.At(9) {
		t.Fatalf("got %+v, %d events, %v", piece, n, ok)
	}
	if _, _, again := p.Next(100); again {
		t.Fatal("a second piece")
	}
}

func TestNothingIsAddedWhereMemoryIsRefused(t *testing.T) {
	r := rules(t)
	memory := &bounded{limit: 60_000}
	b := New(r, memory, math.MaxInt64)
	reset(b, ledger.At(0), 0)
	want, refused := naive{}, 0
	for i := range 5000 {
		id := bytes.Repeat(fmt.Appendf(nil, "%d", i), 10)
		e := Event{User: id, Hash: Hash(id), Boards: [][]byte{[]byte("global")}, Points: 1, Time: border, RecordTime: border}
		got, err := b.Add(&e)
		if err != nil {
			t.Fatal(err)
		}
		if got == NoMemory {
			refused++
			continue
		}
		want.add(r, e)
	}
	if refused == 0 || len(want) == 0 {
		t.Fatalf("%d refused, %d added: the limit shows nothing", refused, len(want))
	}
	got := naive{}
	b.MoveTo(5000)
	collect(t, b, func() int { return 100 }, got)
	sameSums(t, got, want)
}
