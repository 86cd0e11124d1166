package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"pgregory.net/rapid"
)

var present = time.Date(2026, 11, 21, 8, 15, 30, 123e6, time.UTC)

func generator(t testing.TB, o Options) *Generator {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = present
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// written is an event as a consumer reads it.
type written struct {
	Board      json.RawMessage `json:"board"`
	Points     *int64          `json:"points"`
	OccurredAt *string         `json:"occurred_at"`
}

func read(t testing.TB, value []byte) written {
	t.Helper()
	var w written
	if err := json.Unmarshal(value, &w); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return w
}

func TestEqualOptionsMakeEqualBytes(t *testing.T) {
	o := Options{Seed: 7, Members: 5000, Skew: 1.1, Boards: []string{"eu", "us", "asia"}, BoardsPerEvent: 2,
		Spread: 35 * 24 * time.Hour, Bad: 0.1, Corrections: 0.1}
	stream := func(o Options) (all []byte) {
		g := generator(t, o)
		for range 2000 {
			_, all = g.Next(all)
		}
		return all
	}
	first := stream(o)
	if !bytes.Equal(first, stream(o)) {
		t.Error("the same options made other bytes")
	}
	o.Seed++
	if bytes.Equal(first, stream(o)) {
		t.Error("another seed made the same bytes")
	}
}

func TestEveryEventIsWhatTheGeneratorSaysItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Seed:           rapid.Uint64().Draw(t, "seed"),
			Members:        rapid.SampledFrom([]int{1, 2, 49, 5000, 5001, 3_000_000}).Draw(t, "members"),
			Skew:           rapid.SampledFrom([]float64{0, 1.01, 1.1, 3}).Draw(t, "skew"),
			Boards:         rapid.SampledFrom([][]string{nil, {"eu"}, {"eu", "us", "asia"}}).Draw(t, "boards"),
			BoardsPerEvent: rapid.IntRange(1, 8).Draw(t, "boards an event"),
			Spread:         time.Duration(rapid.Int64Range(0, int64(1000*24*time.Hour)).Draw(t, "spread")),
			Bad:            rapid.Float64Range(0, 1).Draw(t, "bad"),
			Corrections:    rapid.Float64Range(0, 1).Draw(t, "corrections"),
			Now:            present,
		}
		g, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		decoder := event.NewDecoder(event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 100, MaxFuture: 300_000, Boards: o.Boards})
		var buf []byte
		for range 50 {
			var e Event
			e, buf = g.Next(buf[:0])
			var got event.Event
			bad := decoder.Decode(e.Value, present.UnixMilli(), &got)
			reason := ""
			if bad != nil {
				reason = string(bad.Reason)
			}
			if reason != e.Reason {
				t.Fatalf("%s\nis %q (%v), the generator says %q", e.Value, reason, bad, e.Reason)
			}
			if bad != nil {
				continue
			}
			if !bytes.Equal(got.User, e.Key) {
				t.Fatalf("key %q of %s", e.Key, e.Value)
			}
			oldest := present.Add(-o.Spread).UnixMilli()
			if got.Time < oldest || got.Time > present.UnixMilli() {
				t.Fatalf("%s isn't within %v", e.Value, o.Spread)
			}
			if most := min(o.BoardsPerEvent, max(len(o.Boards), 1)); len(got.Boards) > most {
				t.Fatalf("%s has more than %d boards", e.Value, most)
			}
		}
	})
}

func TestSharesAreKept(t *testing.T) {
	const n = 50_000
	g := generator(t, Options{Bad: 0.1, Corrections: 0.25, PointsMin: 5, PointsMax: 15, Boards: []string{"a", "b", "c", "d"}, BoardsPerEvent: 3})
	var bad, negative, good, lists int
	points := make(map[int64]int)
	var buf []byte
	for range n {
		var e Event
		e, buf = g.Next(buf[:0])
		if e.Reason != "" {
			bad++
			continue
		}
		good++
		w := read(t, e.Value)
		if *w.Points < 0 {
			negative++
		}
		points[max(*w.Points, -*w.Points)]++
		if w.Board[0] == '[' {
			lists++
		}
	}
	near := func(what string, got, of int, want float64) {
		if share := float64(got) / float64(of); math.Abs(share-want) > 0.02 {
			t.Errorf("%s: a share of %.3f, want %.3f", what, share, want)
		}
	}
	near("bad", bad, n, 0.1)
	near("corrections", negative, good, 0.25)
	near("several boards", lists, good, 2./3)
	for p := int64(5); p <= 15; p++ {
		near("equal points", points[p], good, 1./11)
	}
	if len(points) != 11 {
		t.Errorf("%d different points, want 11", len(points))
	}
}

func TestTimesGoBackEvenly(t *testing.T) {
	const n, weeks = 20_000, 5
	g := generator(t, Options{Spread: weeks * 7 * 24 * time.Hour})
	var each [weeks]int
	var buf []byte
	for range n {
		var e Event
		e, buf = g.Next(buf[:0])
		at, err := time.Parse(time.RFC3339, *read(t, e.Value).OccurredAt)
		if err != nil {
			t.Fatal(err)
		}
		each[present.Sub(at)/(7*24*time.Hour)]++
	}
	for i, got := range each {
		if math.Abs(float64(got)-n/weeks) > 0.05*n/weeks {
			t.Errorf("%d events are %d weeks old, want %d", got, i, n/weeks)
		}
	}
}

func TestNoTwoMembersShareAName(t *testing.T) {
	for _, members := range []int{1, 2, spokenMembers, spokenMembers + 1, 20_000_000} {
		seen := map[string]bool{}
		for _, rank := range []int{0, members / 2, members - 1} {
			seen[string(appendName(nil, members, rank))] = true
		}
		for rank := range min(members, spokenMembers) {
			seen[string(appendName(nil, members, rank))] = true
		}
		if want := min(members, spokenMembers); len(seen) < want {
			t.Errorf("%d names of %d members", len(seen), want)
		}
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	for i, o := range []Options{
		{Members: -1}, {Skew: -0.1}, {Skew: 0.9}, {Skew: 11}, {Skew: math.NaN()}, {BoardsPerEvent: 9}, {Spread: -1}, {Bad: 1.1}, {Bad: math.NaN()},
		{Corrections: -0.1}, {PointsMin: 5, PointsMax: 4}, {PointsMin: -1, PointsMax: 4}, {PointsMax: 1 << 53},
		{Spread: 60 * 365 * 24 * time.Hour},
	} {
		o.Now = present
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%d: %+v: %v", i, o, err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	g := generator(b, Options{Members: 1_000_000, Skew: 1.1, Boards: []string{"eu", "us"}, Spread: 35 * 24 * time.Hour, Bad: 0.01, Corrections: 0.05})
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		_, buf = g.Next(slices.Grow(buf[:0], 512))
	}
	b.SetBytes(int64(len(buf)))
}

func TestAShiftMakesOthersTheMostActive(t *testing.T) {
	const members = 50
	g, err := New(Options{Seed: 3, Members: members, Skew: 2, Now: present})
	if err != nil {
		t.Fatal(err)
	}
	most := func() string {
		counts, best := map[string]int{}, ""
		for range 5_000 {
			e, _ := g.Next(nil)
			counts[string(e.Key)]++
			if counts[string(e.Key)] > counts[best] {
				best = string(e.Key)
			}
		}
		return best
	}
	name := func(rank int) string { return string(appendName(nil, members, rank-1)) }
	for shift, rank := range map[int]int{0: 1, 1: 2, members - 1: members, members: 1, -1: members, 2*members + 7: 8} {
		g.SetShift(shift)
		if got, want := most(), name(rank); got != want {
			t.Errorf("with a shift of %d %s is the most active, not %s", shift, got, want)
		}
	}
}
