package ranking

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/testenv"
)

// two are the same standings under two prefixes, in layouts of their own.
func two(t *testing.T) (a, b *fixture) {
	t.Helper()
	a = newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	b = newFixture(t, a.client, a.prefix+"2")
	b.now = a.now
	b.piece = b.newPiece() // in the windows of a, should one end in between
	b.use(t, codec.Wide, 2_000_000_000)
	a.begin(t)
	b.begin(t)
	random := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		var members []ledger.Member
		for m := range 1200 {
			one := a.member(fmt.Sprint("m", m), random.Int64N(1000))
			one.Time -= random.Int64N(10_000)
			members = append(members, one)
		}
		a.add(t, members...)
		b.add(t, members...)
	}
	return a, b
}

// diff compares them, and returns the windows and the standings that differ.
func diff(t *testing.T, a, b *fixture, change func(*Diff)) ([]WindowDiff, []Difference) {
	t.Helper()
	var all []Difference
	d := &Diff{Bound: 5000, Each: func(one Difference) error { all = append(all, one); return nil }}
	for _, side := range []struct {
		of   *fixture
		into **View
	}{{a, &d.A}, {b, &d.B}} {
		v, err := NewView(t.Context(), side.of.client, side.of.prefix, 20*time.Second)
		require.NoError(t, err)
		*side.into = v
	}
	if change != nil {
		change(d)
	}
	windows, err := d.Run(t.Context())
	require.NoError(t, err)
	return windows, all
}

func TestTheSameEventsAreEqualInAnyLayout(t *testing.T) {
	a, b := two(t)
	windows, all := diff(t, a, b, nil)
	require.Empty(t, all)
	require.Len(t, windows, 3)
	for _, w := range windows {
		require.False(t, w.Differs(), "%+v", w)
		require.True(t, w.Exact)
		require.True(t, w.InA && w.InB)
	}
}

func TestEveryKindOfDifferenceIsToldFromTheOthers(t *testing.T) {
	a, b := two(t)
	layout := b.store.periods["weekly"].Layout
	w := b.piece.Windows[0]
	score, err := layout.Encode(77, layout.Ticks(w.Start, w.End, b.now))
	require.NoError(t, err)
	zadd := func(f *fixture, member string, score float64) {
		require.NoError(t, f.client.ZAdd(t.Context(), f.key(0), redisZ(score, member)).Err())
	}
	zadd(b, "m1", score)
	zadd(b, "more", score)
	require.NoError(t, b.client.ZRem(t.Context(), b.key(0), "m2").Err())
	zadd(b, "m3", -1) // none that a wide layout writes
	had := b.client.ZScore(t.Context(), b.key(0), "m4").Val()
	points, ticks, err := layout.Decode(had)
	require.NoError(t, err)
	coarser := a.store.periods["weekly"].Layout.Tick
	later, err := layout.Encode(points, ticks-2*coarser/layout.Tick)
	require.NoError(t, err)
	zadd(b, "m4", later)

	windows, all := diff(t, a, b, nil)
	got := windows[1] // weekly, behind monthly
	require.Equal(t, "weekly", got.Period)
	require.Equal(t, []int{1, 1, 1, 1, 1}, []int{got.OnlyA, got.OnlyB, got.Points, got.Times, got.Foreign})
	members := []string{}
	for _, d := range all {
		require.Equal(t, "weekly", d.Period)
		members = append(members, d.Member)
	}
	require.Equal(t, []string{"m1", "m2", "m3", "m4", "more"}, members)
	require.Equal(t, int64(77), all[0].B.Points)
	require.True(t, all[2].B.Foreign)
	for _, filter := range []func(*Diff){
		func(d *Diff) { d.Periods = []string{"monthly", "yearly"} },
		func(d *Diff) { d.Windows = []string{a.piece.Windows[2].Name} },
	} {
		_, all := diff(t, a, b, filter)
		require.Empty(t, all)
	}
	windows, all = diff(t, a, b, func(d *Diff) { d.Bound = 2 })
	require.True(t, windows[1].More)
	require.Len(t, all, 2)
}

func TestWindowsThatAreCutOtherwiseAreNamedAndNotCompared(t *testing.T) {
	a, b := two(t)
	name := a.piece.Windows[0].Listing()
	b.list(t, b.store, name, "1 2 99999999999999")
	windows, all := diff(t, a, b, nil)
	require.Empty(t, all)
	require.Contains(t, windows[1].Why, "it is cut otherwise under the two")
	require.True(t, windows[1].Differs())

	sunday := newFixture(t, a.client, a.prefix+"3")
	calendar, err := periods.NewCalendar("UTC", "sunday")
	require.NoError(t, err)
	sunday.store = sunday.storeOf(t, func(c *Config) { c.Calendar = calendar; delete(c.Periods, periods.Yearly) })
	sunday.begin(t)
	windows, _ = diff(t, a, sunday, nil)
	require.Contains(t, windows[1].Why, "by another time zone or week start")
	require.Equal(t, "yearly boards aren't kept under "+sunday.prefix, windows[2].Why)
	require.Empty(t, windows[0].Why, "a month is one under any week start")
	require.Equal(t, 1200, windows[0].OnlyA)
}

func TestASideThatIsBehindIsNotExact(t *testing.T) {
	a, b := two(t)
	a.add(t, a.member("m1", 5))
	windows, all := diff(t, a, b, nil)
	require.Len(t, all, 3)
	for _, w := range windows {
		require.False(t, w.Exact)
		require.Equal(t, 1, w.Points)
	}
	require.NoError(t, b.client.HSet(t.Context(), b.store.keys.origin(), "events/3", fmt.Sprint("5 ", time.Now().UnixMilli())).Err())
	windows, _ = diff(t, a, b, nil)
	require.Equal(t, []string{"events/3"}, windows[0].IncompleteB)
	require.Empty(t, windows[0].IncompleteA)
}

// Traffic goes to both while they are compared: what differs in between is looked at
// again, and agrees.
func TestTrafficToBothIsNoDifference(t *testing.T) {
	a, b := two(t)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- traffic(t.Context(), stop, a, b) }()
	windows, all := diff(t, a, b, func(d *Diff) { d.Pause = 5 * time.Millisecond })
	close(stop)
	require.NoError(t, <-ended)
	require.LessOrEqual(t, len(all), 3, "one event may be on its way")
	require.Len(t, windows, 3)
}

// traffic gives every side the same events, until it is stopped.
func traffic(ctx context.Context, stop <-chan struct{}, sides ...*fixture) error {
	for n := 0; ; n++ {
		for _, f := range sides {
			f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
			f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member(fmt.Sprint("m", n%1200), 1)}}}
			f.next += 10
			if a, _, err := f.store.Apply(ctx, &f.piece); err != nil || a.Outcome != ledger.Applied {
				return fmt.Errorf("%v: %w", a, err)
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// Two rows are of the same event, or they aren't: ticks that share a millisecond may be.
func TestTimesAreComparedToTheCoarserTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds)
		most := rapid.SampledFrom([]int64{1000, 99_999_999, 2_000_000_000})
		la, err := codec.New(kind.Draw(t, "a"), periods.Weekly.Length(), most.Draw(t, "max a"))
		require.NoError(t, err)
		lb, err := codec.New(kind.Draw(t, "b"), periods.Weekly.Length(), most.Draw(t, "max b"))
		require.NoError(t, err)
		start := int64(1_700_000_000_000)
		end := start + 7*day
		at := rapid.Int64Range(start, end-1)
		rowOf := func(l codec.Layout, at int64) Row {
			score, err := l.Encode(5, l.Ticks(start, end, at))
			require.NoError(t, err)
			r, err := row(l, start, end, fmt.Sprintf("%.17g", score))
			require.NoError(t, err)
			return r
		}
		x := at.Draw(t, "x")
		require.Zero(t, kindOf(rowOf(la, x), rowOf(lb, x), la, lb, end), "one event")
		y := at.Draw(t, "y")
		if apart := max(x, y) - min(x, y); apart >= la.Tick+lb.Tick {
			require.Equal(t, otherTime, kindOf(rowOf(la, x), rowOf(lb, y), la, lb, end))
		}
	})
}

func TestAPrefixSaysItselfHowItWasWritten(t *testing.T) {
	f := someone(t)
	v, err := NewView(t.Context(), f.client, f.prefix, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"UTC", "monday", "c1"}, []string{v.Zone, v.WeekStart, v.Cluster})
	require.Equal(t, f.store.periods["weekly"].Layout, v.layouts["weekly"])
	for schema, says := range map[string]string{
		"nonsense":           "is no schema",
		`{"v":2,"shards":1}`: "version 2",
		`{"v":1,"shards":3}`: "3 shards",
		`{"v":1,"shards":1,"periods":{"hourly":{}}}`:                                                 `a period "hourly"`,
		`{"v":1,"shards":1,"periods":{"weekly":{"k":26,"layout":"readable","max":5,"tick":10}}}`:     "its layout of weekly scores",
		`{"v":1,"shards":1,"periods":{"weekly":{"k":26,"layout":"other","max":99999999,"tick":10}}}`: "its layout of weekly scores",
	} {
		require.NoError(t, f.client.Set(t.Context(), f.store.keys.schema(), schema, 0).Err())
		v, err := NewView(t.Context(), f.client, f.prefix, 20*time.Second)
		require.ErrorContains(t, err, says, schema)
		require.NotNil(t, v, "to be dropped")
	}
	require.NoError(t, f.client.Del(t.Context(), f.store.keys.schema()).Err())
	var none *SchemaError
	_, err = NewView(t.Context(), f.client, f.prefix, 20*time.Second)
	require.ErrorAs(t, err, &none)
	require.Empty(t, none.Found)
}

// A member that both sides lose while they are compared, with a window that is dropped or
// whose retention ends, is a difference of neither.
func TestAMemberThatGoesFromBothSidesMeanwhileIsNoDifference(t *testing.T) {
	a, b := two(t)
	require.NoError(t, b.client.ZRem(t.Context(), b.key(0), "m1", "m2").Err())
	b.next += 10 // b is elsewhere: what differs is looked at again
	require.NoError(t, b.client.HSet(t.Context(), b.store.keys.ledger(), "events/3", b.next).Err())
	looked := 0
	a.client.AddHook(eavesdropper(func(args []any) error {
		if args[1] == compareScript.sha && args[6] == "" { // by their names
			looked++
			return a.client.ZRem(t.Context(), a.key(0), "m1").Err()
		}
		return nil
	}))
	windows, all := diff(t, a, b, nil)
	require.Positive(t, looked)
	require.Equal(t, "weekly", windows[1].Period)
	require.Equal(t, 1, windows[1].OnlyA)
	require.Len(t, all, 1)
	require.Equal(t, "m2", all[0].Member)
}
