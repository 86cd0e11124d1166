package fold

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
)

// reset starts a batch of a partition with one shard at a position.
func reset(b *Batch, at ledger.Position, repeated uint64) {
	began, now := at, ledger.Positions{at}
	if at.Sweeping() {
		began.Hash = repeated
	}
	b.Reset(at.From, now.Next(), ledger.Positions{began}, now)
}

// started returns the position of the single shard at the start of a batch.
func started(b *Batch) ledger.Position {
	if s := b.stands[0]; s.low > 0 {
		return ledger.Position{From: s.from, To: b.to, Hash: s.low}
	}
	return ledger.At(b.stands[0].from)
}

// cut starts to cut a batch of one shard.
func cut(p *Pieces, b *Batch, partition ledger.Partition) { p.Reset(b, partition, 0, started(b)) }

// Owners change in the middle of batches, some shards are further in the sweep than others, and single shards
// go back to earlier positions. Every shard still counts every event of its members exactly once, whatever was
// read in between.
func TestShardsThatStandApartComeToTheSumsOfTheirEvents(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		n := ledger.Shards(rapid.IntRange(1, 5).Draw(t, "shards"))
		random := source(t)
		players := rapid.SampledFrom([]int{3, 60, 1500}).Draw(t, "players")
		var events []Event
		for i := range rapid.SampledFrom([]int{5, 200, 800}).Draw(t, "events") {
			e := event(random, players)
			e.Offset = int64(i)
			events = append(events, e)
		}
		end := int64(len(events))
		s := &sharded{rules: r, n: n, events: events, at: ledger.AllAt(0, n)}
		for range n {
			s.shards = append(s.shards, naive{})
		}
		for range rapid.IntRange(1, 8).Draw(t, "owners") {
			before, sums := append(ledger.Positions{}, s.at...), []naive{}
			for _, one := range s.shards {
				sums = append(sums, maps.Clone(one))
			}
			s.own(t, rapid.Int64Range(1, end).Draw(t, "until"), rapid.IntRange(0, 12).Draw(t, "pieces"))
			for i := range s.at {
				if rapid.IntRange(0, 4).Draw(t, "rolled back") == 0 {
					s.at[i], s.shards[i] = before[i], sums[i]
				}
			}
		}
		s.own(t, end, math.MaxInt)
		want := make([]naive, n)
		for i := range want {
			want[i] = naive{}
		}
		for _, e := range events {
			want[n.Of(e.Hash)].add(r, e)
		}
		for i := range want {
			if s.at[i].Sweeping() {
				t.Fatalf("shard %d stands at %v", i, s.at[i])
			}
			sameSums(t, s.shards[i], want[i])
		}
	})
}

// sharded is a partition with several shards: what each has counted, and its position.
type sharded struct {
	rules  *Rules
	n      ledger.Shards
	events []Event
	at     ledger.Positions
	shards []naive
}

// own reads up to an offset, or until so many pieces are applied.
func (s *sharded) own(t *rapid.T, until int64, pieces int) {
	knows := append(ledger.Positions{}, s.at...)
	for pieces > 0 {
		r := knows.Next()
		to := r.To
		if !r.Resumes() {
			if to = until; r.From >= until {
				return
			}
		}
		b := New(s.rules, &bounded{limit: rapid.SampledFrom([]int64{100_000, 115_000, 130_000, 400_000}).Draw(t, "memory")}, math.MaxInt64)
		b.Reset(r.From, r, knows, knows)
		for o := r.From; o < to; o++ {
			result, err := b.Add(&s.events[o])
			shard := s.n.Of(s.events[o].Hash)
			at := knows[shard]
			in := o < at.From || at.Sweeping() && s.events[o].Hash < at.Hash
			switch {
			case err != nil:
				t.Fatal(err)
			case in && (result == Added || result == Left), !in && result == Repeated, r.For(shard) && result == Elsewhere, !r.For(shard) && result == Added:
				t.Fatalf("offset %d of shard %d, which stands at %v: %d, in the reading %+v", o, shard, at, result, r)
			case result == NoMemory && r.Resumes():
				if !b.Halve() {
					t.Fatal("no memory and nothing to leave to another reading")
				}
				o = r.From - 1
			case result == NoMemory, result == Full:
				to = o
			}
		}
		b.MoveTo(to)
		for i := range s.at {
			if !s.sweep(t, b, i, &pieces) {
				return
			}
			knows[i] = b.End(i, knows[i])
			s.within(t, i, knows[i])
		}
	}
}

// within fails if a shard's sweep is at a hash of another shard.
func (s *sharded) within(t *rapid.T, shard int, at ledger.Position) {
	if at.Sweeping() && s.n.Of(at.Hash) != shard {
		t.Fatalf("shard %d of %d comes to %v", shard, s.n, at)
	}
}

// sweep applies a batch's pieces for a shard while any pieces may still be applied, and then reports false. A
// shard for which the batch has nothing may stay at its position.
func (s *sharded) sweep(t *rapid.T, b *Batch, shard int, pieces *int) bool {
	var p Pieces
	if !b.For(shard, s.at[shard]) {
		return true
	}
	p.Reset(b, ledger.Partition{Topic: "points"}, shard, s.at[shard])
	if !p.Any() && !s.at[shard].Sweeping() && rapid.Bool().Draw(t, "left where it stands") {
		return true
	}
	for piece, _, ok := p.Next(rapid.IntRange(1, 50).Draw(t, "width")); ok; piece, _, ok = p.Next(rapid.IntRange(1, 50).Draw(t, "width")) {
		if *pieces == 0 {
			return false
		}
		*pieces--
		s.within(t, shard, piece.Next)
		if piece.Expected != s.at[shard] {
			t.Fatalf("shard %d stands at %v, and a piece expects %v", shard, s.at[shard], piece.Expected)
		}
		for _, g := range piece.Groups {
			for _, m := range g.Members {
				if of := s.n.Of(Hash(m.ID)); of != shard {
					t.Fatalf("member %s of shard %d is in a piece of shard %d", m.ID, of, shard)
				}
				for _, w := range g.Windows {
					at := place{string(m.ID), piece.Windows[w].Listing()}
					was := s.shards[shard][at]
					if _, ok := s.shards[shard][at]; !ok {
						was.Time = ledger.NoTime
					}
					s.shards[shard][at] = ledger.Member{Points: was.Points + m.Points, Time: max(was.Time, m.Time)}
				}
			}
		}
		s.at[shard] = piece.Next
	}
	return true
}

// A reading whose memory holds only the members below a hash ends at that hash in that hash's shard. Shards
// below it are done, and shards above it stay at their positions.
func TestWhereShardsStandAfterABatch(t *testing.T) {
	const n, half = 4, 1 << 63
	b := New(rules(t), &unbounded{}, math.MaxInt64)
	sweep := func(hash uint64) ledger.Position { return ledger.Position{From: 10, To: 90, Hash: hash} }
	at := ledger.Positions{sweep(5), ledger.At(20), sweep(half + 5), ledger.At(90)}
	b.Reset(10, at.Next(), at, at)
	b.MoveTo(90)
	for _, c := range []struct {
		high uint64
		want ledger.Positions
	}{
		{0, ledger.AllAt(90, n)},
		{3, at},
		{77, ledger.Positions{sweep(77), at[1], at[2], at[3]}},
		{half / 2, ledger.Positions{ledger.At(90), at[1], at[2], at[3]}},
		{half - 1, ledger.Positions{ledger.At(90), {From: 20, To: 90, Hash: half - 1}, at[2], at[3]}},
		{half, ledger.Positions{ledger.At(90), ledger.At(90), at[2], at[3]}},
		{half + 9, ledger.Positions{ledger.At(90), ledger.At(90), sweep(half + 9), at[3]}},
		{math.MaxUint64, ledger.AllAt(90, n)},
	} {
		b.Below(c.high)
		for i, p := range at {
			if got := b.End(i, p); got != c.want[i] {
				t.Errorf("below %016x, shard %d comes to %v, want %v", c.high, i, got, c.want[i])
			}
		}
	}
}

// Pieces of several shards are cut concurrently.
func TestShardsAreCutSideBySide(t *testing.T) {
	const n = 8
	b := New(rules(t), &unbounded{}, math.MaxInt64)
	all := ledger.AllAt(0, n)
	b.Reset(0, all.Next(), all, all)
	want := naive{}
	for i := range 5000 {
		e := Event{Offset: int64(i), User: fmt.Appendf(nil, "player-%d", i%1200), Boards: [][]byte{[]byte("global")}, Points: 1, Time: border + int64(i%3-1)*7*day, RecordTime: border}
		e.Hash = Hash(e.User)
		if r, err := b.Add(&e); r != Added || err != nil {
			t.Fatal(r, err)
		}
		want.add(b.targets.rules, e)
	}
	b.MoveTo(5000)
	sums := make(chan naive)
	for shard := range n {
		go func() {
			var p Pieces
			p.Reset(b, ledger.Partition{Topic: "points"}, shard, ledger.At(0))
			sum := naive{}
			for piece, _, ok := p.Next(50); ok; piece, _, ok = p.Next(50) {
				for _, g := range piece.Groups {
					for _, m := range g.Members {
						for _, w := range g.Windows {
							sum[place{string(m.ID), piece.Windows[w].Listing()}] = ledger.Member{Points: m.Points, Time: m.Time}
						}
					}
				}
			}
			sums <- sum
		}()
	}
	got := naive{}
	for range n {
		maps.Copy(got, <-sums)
	}
	sameSums(t, got, want)
}
