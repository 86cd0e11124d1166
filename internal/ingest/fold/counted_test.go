package fold

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/loaded"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	boardrules "github.com/standings/standings/internal/rules"
)

// history is a partition as a snapshot found it: the positions of its instants, by shard, and as of which
// instant the row of a member in a window is, if there is one.
type history struct {
	counted *Counted
	of      map[place]ledger.Position
	shards  ledger.Shards
}

// snapshotOf makes a history of some events: each shard begins somewhere, and each row was read somewhere
// later, in the middle of sweeps too.
func snapshotOf(t *rapid.T, random *rand.Rand, r *Rules, n ledger.Shards, events []Event) *history {
	end := int64(len(events))
	h := &history{of: map[place]ledger.Position{}, shards: n, counted: &Counted{Rows: loaded.New(1 << 30)}}
	var instants []ledger.Position
	last := make([][]int, n) // instants of each shard, in their order
	for shard := range n {
		from := random.Int64N(end/2 + 1)
		h.counted.Absent = append(h.counted.Absent, ledger.At(from))
		at := ledger.At(from)
		for range 1 + random.IntN(5) {
			if to := at.From + random.Int64N(end-at.From+1); to > at.To && random.IntN(2) == 0 {
				hash := random.Uint64() | 1
				if shard := n.From(int(shard)); shard > 0 && random.IntN(2) == 0 {
					hash = shard + random.Uint64N(1<<60)
				}
				at = ledger.Position{From: at.To, To: to, Hash: hash}
			} else {
				at = ledger.At(max(at.To, to))
			}
			last[shard] = append(last[shard], len(instants))
			if n := len(instants); n == 0 || instants[n-1] != at {
				h.counted.Changes = append(h.counted.Changes, Change{loaded.Instant(n), at})
			}
			instants = append(instants, at)
			h.counted.Before = max(h.counted.Before, at.To)
		}
	}
	rows := h.counted.Rows
	pages := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "of four members on pages")
	for i := range events {
		e := &events[i]
		windows, _, err := r.Windows(e.Boards, e.Time, e.RecordTime)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range windows {
			for _, b := range e.Boards {
				at := place{string(e.User), string(b) + ":" + string(w.Period) + ":" + w.Name}
				if _, ok := h.of[at]; ok {
					continue
				}
				shard := n.Of(e.Hash)
				h.of[at] = h.counted.Absent[shard]
				key, number := loaded.KeyOf(e.User), rows.NumberFor(string(b), string(w.Period), w.Name)
				rows.Add(key, number)
				if random.IntN(4) < pages {
					instant := last[shard][random.IntN(len(last[shard]))]
					rows.Set(key, number, loaded.Instant(instant))
					h.of[at] = instants[instant]
				}
			}
		}
	}
	return h
}

// has reports whether an event counts already in a window.
func (h *history) has(e *Event, window string) bool {
	return h.of[place{string(e.User), window}].Denotes(e.Offset, e.Hash)
}

// Whatever was loaded, of whichever instants: with what a replay from the shards' first positions adds,
// each member has each event once in each window, whoever reads and sweeps how much of it, and whichever
// shards go back meanwhile.
func TestAReplayAddsWhatIsNotCountedAlready(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		n := ledger.Shards(rapid.IntRange(1, 4).Draw(t, "shards"))
		random := source(t)
		players := rapid.SampledFrom([]int{3, 60, 800}).Draw(t, "players")
		var events []Event
		for i := range rapid.SampledFrom([]int{5, 200, 600}).Draw(t, "events") {
			e := event(random, players)
			e.Offset = int64(i)
			events = append(events, e)
		}
		end := int64(len(events))
		h := snapshotOf(t, random, r, n, events)
		s := &sharded{rules: r, n: n, events: events, counted: h.counted}
		s.nothing = func(e *Event) bool {
			windows, _, _ := r.Windows(e.Boards, e.Time, e.RecordTime)
			for _, w := range windows {
				for _, b := range e.Boards {
					if !h.has(e, string(b)+":"+string(w.Period)+":"+w.Name) {
						return false
					}
				}
			}
			return true
		}
		want := make([]naive, n)
		for i := range want {
			s.at = append(s.at, h.counted.Absent[i])
			s.shards, want[i] = append(s.shards, naive{}), naive{}
		}
		for _, e := range events {
			want[n.Of(e.Hash)].add(r, e)
			for _, b := range e.Boards { // what was loaded
				for _, p := range r.Periods {
					one := e
					one.Boards = [][]byte{b}
					w, _, _ := p.Rule.At(e.Time)
					if h.has(&e, string(b)+":"+string(w.Period)+":"+w.Name) {
						s.shards[n.Of(e.Hash)].add(&Rules{Periods: []Period{p}}, one)
					}
				}
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "owners") {
			before := append(ledger.Positions{}, s.at...)
			sums := make([]naive, n)
			for i, one := range s.shards {
				sums[i] = naive{}
				for k, v := range one {
					sums[i][k] = v
				}
			}
			s.own(t, rapid.Int64Range(1, end).Draw(t, "until"), rapid.IntRange(0, 12).Draw(t, "pieces"))
			for i := range s.at {
				if rapid.IntRange(0, 4).Draw(t, "rolled back") == 0 {
					s.at[i], s.shards[i] = before[i], sums[i]
				}
			}
		}
		s.own(t, end, math.MaxInt)
		for i := range want {
			sameSums(t, s.shards[i], want[i])
		}
		if h.counted.Missed() {
			t.Fatal("something was looked for that nothing was added for")
		}
	})
}

// By each rule a batch has, for each window, what the events that don't count there yet result in.
func TestByEachRuleABatchLeavesOutWhatIsCountedAlready(t *testing.T) {
	r := ruledBoards(t)
	names := []string{"global", "arena", "cup", "medals", "elo"}
	rapid.Check(t, func(t *rapid.T) {
		random := source(t)
		var events []Event
		for i := range 1 + random.IntN(60) {
			e := Event{Offset: int64(i), User: fmt.Append(nil, random.IntN(4)), Points: random.Int64N(11) - 5, Time: border + random.Int64N(40*day)}
			e.Hash, e.RecordTime = Hash(e.User), e.Time
			others := false
			var tuples []boardrules.Tuple
			for _, name := range names {
				if random.IntN(2) == 0 {
					continue
				}
				e.Boards, others = append(e.Boards, []byte(name)), others || name != "global"
				tuple := boardrules.Tuple{}
				switch name {
				case "arena", "cup":
					tuple = boardrules.Tuple{int64(i) % 4, int64(i) % 3}
				case "medals":
					tuple = boardrules.Tuple{random.Int64N(5) - 2, random.Int64N(5) - 2}
				case "elo":
					tuple = boardrules.Tuple{random.Int64N(10)}
				}
				tuples = append(tuples, tuple)
			}
			if others {
				e.Tuples = tuples
			}
			if len(e.Boards) > 0 {
				events = append(events, e)
			}
		}
		if len(events) == 0 {
			return
		}
		for i := range events {
			events[i].Offset = int64(i)
		}
		h := snapshotOf(t, random, r, 1, events)
		sealing := &Sealed{}
		final := map[string]bool{}
		if w, _, _ := r.Windows(events[0].Boards, events[0].Time, events[0].RecordTime); len(w) > 0 && random.IntN(2) == 0 {
			one := ledger.Window{Board: string(events[0].Boards[0]), Period: string(w[0].Period), Name: w[0].Name}
			sealing.Add(0, 0, one)
			final[one.Listing()] = true
		}
		b := New(r, plenty{}, 1<<30)
		b.Without(h.counted)
		b.Leaves(sealing)
		from := h.counted.Absent[0].From
		b.Reset(from, ledger.Reading{}, ledger.AllAt(from, 1), ledger.AllAt(from, 1))
		want, got := map[string]boardrules.Value{}, map[string]boardrules.Value{}
		for i := range events[from:] {
			e := &events[from+int64(i)]
			result, err := b.Add(e)
			if err != nil || result != Added && result != Repeated && result != Late && result != Early {
				t.Fatal(result, err)
			}
			added := false
			for j, name := range e.Boards {
				board := r.Boards[string(name)]
				windows, _, _ := r.Windows([][]byte{name}, e.Time, e.RecordTime)
				for _, w := range windows {
					listing := string(name) + ":" + string(w.Period) + ":" + w.Name
					if final[listing] || h.has(e, listing) {
						continue
					}
					added = true
					merge(want, string(e.User)+" "+listing, board, valueOf(e, j, board, w))
				}
			}
			if added != (result == Added) {
				t.Fatalf("offset %d: %d, and something is to be added: %v", e.Offset, result, added)
			}
		}
		b.MoveTo(int64(len(events)))
		var p Pieces
		p.Reset(b, ledger.Partition{}, 0, ledger.At(from))
		for piece, _, ok := p.Next(10); ok; piece, _, ok = p.Next(10) {
			for _, g := range piece.Groups {
				for _, w := range g.Windows {
					for _, m := range g.Members {
						got[string(m.ID)+" "+piece.Windows[w].Listing()] = boardrules.Value{Packed: m.Points, Time: m.Time}
					}
				}
			}
		}
		b.Release()
		if len(got) != len(want) {
			t.Fatalf("%d member-windows, want %d", len(got), len(want))
		}
		for k, w := range want {
			if got[k] != w {
				t.Fatalf("%s: %v, want %v", k, got[k], w)
			}
		}
		if h.counted.Missed() {
			t.Fatal("something was looked for that nothing was added for")
		}
	})
}

// valueOf is what an event is worth in a window of its jth board.
func valueOf(e *Event, j int, board *Board, w periods.Window) boardrules.Value {
	if board.Rule == nil {
		v := boardrules.Value{Packed: e.Points, Time: ledger.NoTime}
		if e.Points > 0 {
			v.Time = e.Time
		}
		return v
	}
	at := e.Time
	if board.Rule.Score == boardrules.Last {
		at = boardrules.Cut(w.Start, w.End, board.Ticks[w.Period], at)
	}
	return board.Rule.Value(&e.Tuples[j], at)
}

func merge(all map[string]boardrules.Value, key string, board *Board, v boardrules.Value) {
	had, ok := all[key]
	switch {
	case !ok:
	case board.Rule == nil:
		v = boardrules.Value{Packed: had.Packed + v.Packed, Time: max(had.Time, v.Time)}
	default:
		v = board.Rule.Merge(had, v)
	}
	all[key] = v
}

func TestAnEventThatNobodyLookedForIsReported(t *testing.T) {
	t.Parallel()
	c := &Counted{Before: 10, Absent: []ledger.Position{ledger.At(0)}, Rows: loaded.New(1 << 20)}
	b := New(rules(t), plenty{}, 1<<30)
	b.Without(c)
	b.Reset(0, ledger.Reading{}, ledger.AllAt(0, 1), ledger.AllAt(0, 1))
	e := Event{Offset: 10, User: []byte("a"), Hash: Hash([]byte("a")), Boards: [][]byte{[]byte("global")}, Points: 1, Time: border, RecordTime: border}
	if r, err := b.Add(&e); r != Added || err != nil || c.Missed() {
		t.Fatal(r, err, "past all positions nothing is looked up")
	}
	e.Offset = 9
	if r, err := b.Add(&e); r != Added || err != nil || !c.Missed() {
		t.Fatal(r, err)
	}
	b.Release()
}
