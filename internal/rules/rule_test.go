package rules

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
)

func mustRule(t rapid.TB, score Score, list ...codec.Field) Rule {
	t.Helper()
	fields, err := codec.NewFields(list...)
	require.NoError(t, err)
	r, err := New(score, fields)
	require.NoError(t, err)
	return r
}

var (
	arena  = []codec.Field{{Name: "stage", Max: 999}, {Name: "revives", Max: 99, Fewest: true}}
	lap    = []codec.Field{{Name: "lap_ms", Max: 3_599_999, Fewest: true}}
	medals = []codec.Field{{Name: "gold", Max: 9999}, {Name: "silver", Max: 9999}, {Name: "bronze", Max: 9999}}
)

// near draws from [lo, hi], often near its ends or zero.
func near(lo, hi int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(lo, hi),
		rapid.Int64Range(lo, min(hi, lo+2)),
		rapid.Int64Range(max(lo, hi-2), hi),
		rapid.Int64Range(max(lo, min(-2, hi)), min(hi, max(2, lo))),
	)
}

// rulesOf draws rules with fields of any size that fits, for all three ways.
func rulesOf(scores ...Score) *rapid.Generator[Rule] {
	return rapid.Custom(func(t *rapid.T) Rule {
		n := rapid.IntRange(1, codec.MaxFields).Draw(t, "fields")
		signed := n == 1 && rapid.Bool().Draw(t, "signed")
		left := 52 // bits
		list := make([]codec.Field, n)
		for i := range list {
			bits := rapid.IntRange(1, left-(n-1-i)).Draw(t, "bits")
			left -= bits
			list[i] = codec.Field{
				Name: string(rune('a' + i)), Signed: signed,
				Max:    near(1, 1<<bits-1).Draw(t, "max"),
				Fewest: rapid.Bool().Draw(t, "fewest"),
			}
		}
		return mustRule(t, rapid.SampledFrom(scores).Draw(t, "score"), list...)
	})
}

type event struct {
	values codec.Tuple
	time   int64
}

// events draws events that the rule accepts. If part is the number of events, their sums stay within the
// fields' ranges in any order.
func events(t *rapid.T, r *Rule, n, part int) []event {
	all := make([]event, n)
	for i := range all {
		for f, field := range r.Fields.List() {
			low, high := int64(0), field.Max
			if r.Score == Sum {
				high /= int64(part)
				low = -high
			} else if field.Signed {
				low = -high
			}
			all[i].values[f] = near(low, high).Draw(t, "value")
		}
		all[i].time = rapid.Int64Range(0, 50).Draw(t, "time")
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "alike") == 0 {
			all[i].values = all[i-1].values
		}
		if got := r.Takes(&all[i].values); got != -1 {
			t.Fatalf("%v isn't taken for field %d", all[i].values, got)
		}
	}
	return all
}

// better compares tuples field by field.
func better(r *Rule, a, b codec.Tuple) bool {
	for i, f := range r.Fields.List() {
		if a[i] != b[i] {
			return (a[i] > b[i]) != f.Fewest
		}
	}
	return false
}

// expected combines events as the design describes.
func expected(r *Rule, all []event) (tuple codec.Tuple, at int64) {
	switch r.Score {
	case Sum:
		at = NoTime
		for _, e := range all {
			for i := range tuple {
				tuple[i] += e.values[i]
			}
			if better(r, e.values, codec.Tuple{}) {
				at = max(at, e.time)
			}
		}
		return tuple, at
	case Best:
		first := slices.MinFunc(all, func(a, b event) int {
			switch {
			case better(r, a.values, b.values):
				return -1
			case better(r, b.values, a.values):
				return 1
			}
			return int(a.time - b.time)
		})
		return first.values, first.time
	}
	latest := slices.MaxFunc(all, func(a, b event) int { return int(a.time - b.time) }).time
	for i, e := range slices.DeleteFunc(slices.Clone(all), func(e event) bool { return e.time != latest }) {
		if i == 0 || better(r, e.values, tuple) {
			tuple = e.values
		}
	}
	return tuple, latest
}

// mergeAnyhow merges events in a drawn order and in drawn groups.
func mergeAnyhow(t *rapid.T, r *Rule, all []event) Value {
	values := make([]Value, len(all))
	for i, e := range rapid.Permutation(all).Draw(t, "order") {
		values[i] = r.Value(&e.values, e.time)
	}
	for len(values) > 1 {
		i := rapid.IntRange(0, len(values)-2).Draw(t, "merged")
		if rapid.Bool().Draw(t, "the other way round") {
			values[i] = r.Merge(values[i+1], values[i])
		} else {
			values[i] = r.Merge(values[i], values[i+1])
		}
		values = slices.Delete(values, i+1, i+2)
	}
	return values[0]
}

func TestWhatEventsComeToIsAFunctionOfTheirSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rulesOf(Scores()...).Draw(t, "rule")
		n := rapid.IntRange(1, 8).Draw(t, "events")
		all := events(t, &r, n, n)
		v := mergeAnyhow(t, &r, all)
		tuple, at := expected(&r, all)
		if got, ok := r.Values(v.Packed); !ok || got != tuple || v.Time != at {
			t.Fatalf("%s of %v: %v came to %v at %d, want %v at %d", r.Score, r.Fields, all, got, v.Time, tuple, at)
		}
	})
}

func TestMergingIsCommutativeAndAssociativeAndOfBestAndLastIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rulesOf(Scores()...).Draw(t, "rule")
		all := events(t, &r, 3, 3)
		a, b, c := r.Value(&all[0].values, all[0].time), r.Value(&all[1].values, all[1].time), r.Value(&all[2].values, all[2].time)
		if r.Merge(a, b) != r.Merge(b, a) {
			t.Fatalf("%s: %v and %v are %v, the other way round %v", r.Score, a, b, r.Merge(a, b), r.Merge(b, a))
		}
		if r.Merge(r.Merge(a, b), c) != r.Merge(a, r.Merge(b, c)) {
			t.Fatalf("%s: %v, %v, %v are %v and %v", r.Score, a, b, c, r.Merge(r.Merge(a, b), c), r.Merge(a, r.Merge(b, c)))
		}
		if r.Score != Sum && r.Merge(a, a) != a {
			t.Fatalf("%s: %v twice is %v", r.Score, a, r.Merge(a, a))
		}
		if none := (Value{0, NoTime}); r.Score == Sum && r.Merge(a, none) != a {
			t.Fatalf("%v and nothing is %v", a, r.Merge(a, none))
		}
	})
}

func TestTheGreaterValueIsTheBetterTuple(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rulesOf(Scores()...).Draw(t, "rule")
		all := events(t, &r, 2, 1)
		a, b := r.Value(&all[0].values, 0).Packed, r.Value(&all[1].values, 0).Packed
		if (a > b) != better(&r, all[0].values, all[1].values) || (a == b) != (all[0].values == all[1].values) {
			t.Fatalf("%s of %v: %v is %d, %v is %d", r.Score, r.Fields, all[0].values, a, all[1].values, b)
		}
	})
}

// A sum of several fields in one number is either correct in each field or Beyond: no field's overflow
// changes another field.
func TestASumNeverLosesAnOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rulesOf(Sum).Draw(t, "rule")
		var sum codec.Tuple
		inside := true
		v := Value{0, NoTime}
		for _, e := range events(t, &r, rapid.IntRange(1, 12).Draw(t, "events"), 1) {
			v = r.Merge(v, r.Value(&e.values, e.time))
			for i, f := range r.Fields.List() {
				sum[i] += e.values[i]
				inside = inside && sum[i] <= f.Max && sum[i] >= -f.Max
			}
		}
		got, ok := r.Values(v.Packed)
		if ok && got != sum || !ok && (inside || !r.several) {
			t.Fatalf("%v came to %v, %v; want %v (inside all the time: %v)", r.Fields, got, ok, sum, inside)
		}
		if !ok {
			e := codec.Tuple{-r.limit[0]}
			if v = r.Merge(v, r.Value(&e, 0)); v.Packed != Beyond {
				t.Fatalf("beyond and %v is %v", e, v)
			}
		}
	})
}

func TestASumOfPointsPastAnInt64IsBeyond(t *testing.T) {
	r, err := Default(1<<52 - 1)
	require.NoError(t, err)
	for _, sign := range []int64{1, -1} {
		v := Value{sign << 62, 5}
		for range 3 {
			v = r.Merge(v, Value{sign << 61, 6})
		}
		if _, ok := r.Digits(v.Packed); ok || v.Time != 6 {
			t.Errorf("%+v isn't beyond", v)
		}
	}
}

func TestWhatAFieldCantHoldIsNotTaken(t *testing.T) {
	for _, c := range []struct {
		score  Score
		list   []codec.Field
		values codec.Tuple
		field  int
	}{
		{Sum, arena, codec.Tuple{-999, 99}, -1},
		{Sum, arena, codec.Tuple{-1000, 99}, 0},
		{Sum, arena, codec.Tuple{0, -100}, 1},
		{Best, arena, codec.Tuple{999, 0}, -1},
		{Best, arena, codec.Tuple{-1, 0}, 0},
		{Last, arena, codec.Tuple{1000, 100}, 0},
		{Last, arena, codec.Tuple{0, 100}, 1},
		{Best, []codec.Field{{Name: "t", Max: 5, Signed: true}}, codec.Tuple{-5}, -1},
		{Best, []codec.Field{{Name: "t", Max: 5, Signed: true}}, codec.Tuple{-6}, 0},
	} {
		r := mustRule(t, c.score, c.list...)
		if got := r.Takes(&c.values); got != c.field {
			t.Errorf("%s of %v: %v fails at %d, want %d", c.score, r.Fields, c.values, got, c.field)
		}
	}
}

func TestTheDefaultRuleSumsPoints(t *testing.T) {
	r, err := Default(99_999_999)
	if err != nil || r.Score != Sum || r.Fields.Len() != 1 || r.Fields.At(0) != (codec.Field{Name: "points", Max: 99_999_999, Signed: true}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if NoTime != ledger.NoTime {
		t.Error("no time is another than that of a piece")
	}
	for _, v := range []struct {
		points int64
		want   Value
	}{{25, Value{25, 7}}, {0, Value{0, NoTime}}, {-25, Value{-25, NoTime}}} {
		if got := r.Value(&codec.Tuple{v.points}, 7); got != v.want {
			t.Errorf("%d points are %+v, want %+v", v.points, got, v.want)
		}
	}
	if _, err := Default(0); err == nil {
		t.Error("a range of 0 was taken")
	}
}

func TestARuleThatCantBeIsRefused(t *testing.T) {
	fields := mustRule(t, Sum, arena...).Fields
	if _, err := New("mean", fields); err == nil || err.Error() != `score "mean" must be one of sum, best, last` {
		t.Errorf("mean: %v", err)
	}
	huge, err := codec.NewFields(codec.Field{Name: "a", Max: math.MaxInt64})
	require.NoError(t, err)
	if _, err := New(Best, huge); !errors.Is(err, codec.ErrRange) {
		t.Errorf("a field that no layout holds: %v", err)
	}
}

func TestATimeIsCutToItsTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]codec.Kind{codec.Readable, codec.Wide}).Draw(t, "kind")
		start := rapid.Int64Range(0, 1<<42).Draw(t, "start")
		length := near(1, 1<<35).Draw(t, "length")
		l, err := codec.New(kind, time.Duration(length)*time.Millisecond, near(1, 1<<52-1).Draw(t, "max"))
		require.NoError(t, err)
		end := start + length
		at := near(start-3, end-1).Draw(t, "at")
		got := Cut(start, end, l.Tick, at)
		if want := l.Time(start, end, l.Ticks(start, end, at)); got != want {
			t.Fatalf("%d in [%d, %d) with a tick of %d is cut to %d, want %d", at, start, end, l.Tick, got, want)
		}
		if Cut(start, end, l.Tick, got) != got || l.Ticks(start, end, got) != l.Ticks(start, end, at) {
			t.Fatalf("%d is cut to %d, which has another tick", at, got)
		}
	})
}

// Events are folded, and added to a standing, in any order and any batches: with times cut to ticks, the
// standing is the same.
func TestAStandingIsAFunctionOfTheSetOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rulesOf(Scores()...).Draw(t, "rule")
		n := rapid.IntRange(1, 8).Draw(t, "events")
		all := events(t, &r, n, n)
		if r.Score == Sum { // not below 0: for refused sums the order matters
			for i := range all {
				for f, field := range r.Fields.List() {
					if !field.Signed {
						all[i].values[f] = max(all[i].values[f], -all[i].values[f])
					}
				}
			}
		}
		const start, end = -10, 60
		tick := rapid.Int64Range(1, 40).Draw(t, "tick")
		ticks := func(at int64) int64 { return (end - 1 - max(at, start)) / tick }
		if r.Score == Last {
			for i := range all {
				all[i].time = Cut(start, end, tick, all[i].time)
			}
		}
		tuple, at := expected(&r, all)
		want := Standing{tuple, ticks(at)}

		left := rapid.Permutation(all).Draw(t, "order of pieces")
		var had *Standing
		for len(left) > 0 {
			size := rapid.IntRange(1, len(left)).Draw(t, "piece")
			v := mergeAnyhow(t, &r, left[:size])
			now, ok := r.Put(had, v.Packed, ticks(v.Time))
			if !ok {
				t.Fatalf("%v was refused", left[:size])
			}
			had, left = &now, left[size:]
		}
		if *had != want {
			t.Fatalf("%s of %v by ticks of %d: %v came to %+v, want %+v", r.Score, r.Fields, tick, all, *had, want)
		}
		if again, ok := r.Put(had, mergeAnyhow(t, &r, all).Packed, ticks(at)); r.Score != Sum && (!ok || again != want) {
			t.Fatalf("%s: the same events once more came to %+v, want %+v", r.Score, again, want)
		}
	})
}

func TestASumThatLeavesAFieldIsRefused(t *testing.T) {
	r := mustRule(t, Sum, medals...)
	had := Standing{codec.Tuple{5, 9999, 0}, 7}
	for _, c := range []struct {
		change codec.Tuple
		ok     bool
	}{{codec.Tuple{0, 1, 0}, false}, {codec.Tuple{1, 0, -1}, false}, {codec.Tuple{-6, 0, 0}, false}, {codec.Tuple{1, -9999, 9999}, true}} {
		if now, ok := r.Put(&had, r.Value(&c.change, 0).Packed, 9); ok != c.ok {
			t.Errorf("%v came to %v, %v", c.change, now, ok)
		}
	}
	if _, ok := r.Put(&had, Beyond, 9); ok {
		t.Error("beyond was put")
	}
	if _, ok := r.Put(nil, r.Value(&codec.Tuple{0, 0, -1}, 0).Packed, 9); ok {
		t.Error("a sum below 0 was begun")
	}
}

func TestTheScriptGetsWhatItNeeds(t *testing.T) {
	for want, c := range map[string]struct {
		rule Rule
		kind codec.Kind
	}{
		`{"score":"best","weight":[100,1],"top":[999,99],"zero":[0,99],"bias":0,"text":"best(stage:999,revives:99:fewest)"}`: {mustRule(t, Best, arena...), codec.Readable},
		`{"score":"sum","weight":[500000,5000,1],"top":[6,99,4999],"zero":[0,0,4999],"bias":0,"text":"sum(a:6,b:99,c:4999:fewest)"}`: {
			mustRule(t, Sum, codec.Field{Name: "a", Max: 6}, codec.Field{Name: "b", Max: 99}, codec.Field{Name: "c", Max: 4999, Fewest: true}), codec.Wide},
		`{"score":"last","weight":[1],"top":[10],"zero":[5],"bias":5,"text":"last(a:5:signed:fewest)"}`: {mustRule(t, Last, codec.Field{Name: "a", Max: 5, Signed: true, Fewest: true}), codec.Wide},
	} {
		p, err := codec.NewPacking(c.kind, c.rule.Fields)
		require.NoError(t, err)
		if got := c.rule.Script(&p); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestMergingAllocatesNothing(t *testing.T) {
	for _, score := range Scores() {
		r := mustRule(t, score, medals...)
		if n := testing.AllocsPerRun(100, func() {
			v := r.Merge(r.Value(&codec.Tuple{1, 2, 3}, 5), r.Value(&codec.Tuple{1, 2, 3}, 6))
			if _, ok := r.Digits(v.Packed); !ok {
				t.Error("beyond")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", score, n)
		}
	}
}

// FuzzSum adds changes of several fields in one number: the sum is correct in each field, or Beyond.
func FuzzSum(f *testing.F) {
	f.Add(uint32(999), uint32(99), uint8(1), uint64(1))
	f.Fuzz(func(t *testing.T, a, b uint32, fewest uint8, seed uint64) {
		list := []codec.Field{
			{Name: "a", Max: int64(a)>>6 + 1, Fewest: fewest&1 == 1},
			{Name: "b", Max: int64(b)>>6 + 1, Fewest: fewest&2 == 2},
		}
		fields, err := codec.NewFields(list...)
		require.NoError(t, err)
		r, err := New(Sum, fields)
		if err != nil {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		var sum codec.Tuple
		v := Value{0, NoTime}
		inside := true
		for range 20 {
			e := codec.Tuple{random.Int64N(2*list[0].Max+1) - list[0].Max, random.Int64N(2*list[1].Max+1) - list[1].Max}
			v = r.Merge(r.Value(&e, 1), v)
			for i := range list {
				sum[i] += e[i]
				inside = inside && sum[i] <= list[i].Max && sum[i] >= -list[i].Max
			}
			if got, ok := r.Values(v.Packed); ok != inside || ok && got != sum {
				t.Fatalf("%v: %v, %v; want %v, inside all the time: %v", fields, got, ok, sum, inside)
			}
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	points, err := Default(99_999_999)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		rule Rule
	}{{"points", points}, {"medals", mustRule(b, Sum, medals...)}, {"best", mustRule(b, Best, arena...)}, {"last", mustRule(b, Last, lap...)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			v, n := c.rule.Value(&codec.Tuple{}, 0), int64(0)
			for b.Loop() {
				e := codec.Tuple{n & 1, -n & 1}
				if c.rule.Score != Sum {
					e[1] = n & 1
				}
				v = c.rule.Merge(v, c.rule.Value(&e, n))
				n++
			}
		})
	}
	// The cost of adding points and keeping the later time with plain integers.
	b.Run("plain", func(b *testing.B) {
		var sum, at, n int64
		for b.Loop() {
			points, time := n&1, int64(NoTime)
			if points > 0 {
				time = n
			}
			sum, at = add(sum, points), max(at, time)
			n++
		}
		if sum < 0 || at < 0 {
			b.Fatal(sum, at)
		}
	})
}
