package ranking

// Tests every outcome of apply, and that a call with another outcome than applied writes nothing.

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/redisconn"
)

// answers requires an answer, and that the call changed nothing.
func (f *fixture) answers(t tester, want ledger.Answer) {
	t.Helper()
	f.unchanged(t, func() {
		require.Equal(t, want, f.apply(t))
		if want.Outcome != ledger.Applied { // Applied: the answer to a repeated call
			require.Equal(t, want, f.check(t), "a check answers as Apply does")
		}
	})
}

// refuses requires an overflow of exactly these members.
func (f *fixture) refuses(t tester, members ...string) {
	t.Helper()
	want := ledger.Answer{Outcome: ledger.Refusing}
	for _, m := range members {
		want.Refused = append(want.Refused, ledger.Refusal{Member: m, Reason: ledger.Overflow})
	}
	f.answers(t, want)
}

// someone returns a fixture whose next piece adds to an existing member.
func someone(tb testing.TB) *fixture {
	tb.Helper()
	f := fixed(tb)
	f.add(tb, f.member("u1", 10))
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	return f
}

func TestALedgerThatStandsElsewhereIsMoved(t *testing.T) {
	for name, c := range map[string]struct {
		expected, next ledger.Position
		ledger         string // content of the ledger; "-" for none
		want           ledger.Answer
	}{
		"stale":             {ledger.At(0), ledger.At(20), "", ledger.Answer{Outcome: ledger.Moved, Found: "10"}},
		"ahead":             {ledger.At(11), ledger.At(20), "", ledger.Answer{Outcome: ledger.Moved, Found: "10"}},
		"sweeping":          {ledger.At(10), ledger.At(20), "10..30@00000000000000ff", ledger.Answer{Outcome: ledger.Moved, Found: "10..30@00000000000000ff"}},
		"empty":             {ledger.At(10), ledger.At(20), "-", ledger.Answer{Outcome: ledger.Moved}},
		"empty, from 0":     {ledger.At(0), ledger.At(20), "-", ledger.Answer{Outcome: ledger.Moved}},
		"torn":              {ledger.At(10), ledger.At(20), "torn:10", ledger.Answer{Outcome: ledger.Moved, Found: "torn:10"}},
		"the answer lost":   {ledger.At(0), ledger.At(10), "", ledger.Answer{Outcome: ledger.Applied}},
		"lost in the sweep": {ledger.At(10), ledger.Position{From: 10, To: 30, Hash: 255}, "10..30@00000000000000ff", ledger.Answer{Outcome: ledger.Applied}},
	} {
		t.Run(name, func(t *testing.T) {
			f := someone(t)
			switch c.ledger {
			case "":
			case "-":
				require.NoError(t, f.client.HDel(t.Context(), f.store.keys.Ledger(), "events/3").Err())
			default:
				require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Ledger(), "events/3", c.ledger).Err())
			}
			f.piece.Expected, f.piece.Next = c.expected, c.next
			f.answers(t, c.want)
		})
	}
}

func TestAWindowListedWithOtherBoundsStopsAPiece(t *testing.T) {
	for _, change := range []func(*ledger.Window){
		func(w *ledger.Window) { w.Start += 3_600_000 },
		func(w *ledger.Window) { w.End -= 3_600_000 },
	} {
		f := someone(t)
		w := f.piece.Windows[1]
		change(&f.piece.Windows[1])
		f.answers(t, ledger.Answer{Outcome: ledger.OtherBounds, Window: w.Listing(), Found: f.listing(t, w), Start: w.Start, End: w.End})
	}
	f := someone(t)
	name := f.piece.Windows[1].Listing()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, "nonsense").Err())
	f.answers(t, ledger.Answer{Outcome: ledger.OtherBounds, Window: name, Found: "nonsense"})
}

func (f *fixture) listing(t tester, w ledger.Window) string {
	t.Helper()
	text, err := f.client.HGet(t.Context(), f.store.keys.Windows(), w.Listing()).Result()
	require.NoError(t, err)
	return text
}

func TestAnUnlistedWindowThatHasAKeyIsRefused(t *testing.T) {
	f := someone(t)
	require.NoError(t, f.client.HDel(t.Context(), f.store.keys.Windows(), f.piece.Windows[0].Listing()).Err())
	f.answers(t, ledger.Answer{Outcome: ledger.Unlisted, Window: f.piece.Windows[0].Listing()})
}

func TestAnOverflowNamesEachMemberOnce(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			f := fixedAs(t, kind, 1000)
			f.add(t, f.member("high", 1000), f.member("low", -1000), f.member("middle", 0))
			f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
			overflow := func(members []ledger.Member, want ...string) {
				t.Helper()
				f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: members}}
				f.refuses(t, want...)
			}
			overflow([]ledger.Member{f.member("high", 1)}, "high")
			overflow([]ledger.Member{f.member("low", -1)}, "low")
			overflow([]ledger.Member{f.member("new", 1001)}, "new")
			overflow([]ledger.Member{f.member("new", -1001)}, "new")
			overflow([]ledger.Member{f.member("middle", math.MaxInt64), f.member("new", math.MinInt64), f.member("high", 1<<53+1),
				f.member("low", 2000), f.member("ok", 1), f.member("n2", -1<<53-1)}, "middle", "new", "high", "n2")
			// Refused in several groups and windows, but reported once.
			f.piece.Groups = []ledger.Group{
				{Windows: []int{0}, Members: []ledger.Member{f.member("high", 1), f.member("low", 1)}},
				{Windows: []int{1, 2}, Members: []ledger.Member{f.member("high", 2), f.member("low", -1)}},
			}
			f.refuses(t, "high", "low")
			// Both ends of the range are valid, and so is a step from one to the other.
			f.add(t, f.member("high", -2000), f.member("low", 2000))
		})
	}
}

// past returns a window that ended some time ago.
func (f *fixture) past(name string, ended time.Duration) ledger.Window {
	end := time.Now().Add(-ended).UnixMilli()
	return ledger.Window{Board: "global", Period: "weekly", Name: name, Start: end - 7*day, End: end}
}

func TestAWindowWhoseRetentionIsOverIsLeftAlone(t *testing.T) {
	f := someone(t)
	over := f.past("over", retention+time.Minute)
	f.piece.Windows[0] = over
	old := f.member("u1", 5)
	old.Time = over.End - 1000
	f.piece.Groups = []ledger.Group{
		{Windows: []int{0}, Members: []ledger.Member{old}},
		{Windows: []int{1, 2}, Members: []ledger.Member{f.member("u1", 5)}},
	}
	f.mustApply(t)
	require.NotContains(t, contents(t, f.client, f.prefix), strings.TrimPrefix(f.key(0), f.prefix))

	// The script doesn't read the key of such a window, which here is even a text, and doesn't check its
	// listing.
	require.NoError(t, f.client.Set(t.Context(), f.key(0), "x", 0).Err())
	listing := entry(5, 6, time.Now().UnixMilli()-1000)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), over.Listing(), listing).Err())
	f.mustApply(t)
	require.Equal(t, listing, f.listing(t, over))

	// If all windows are over, the ledger still moves.
	f.piece.Groups = f.piece.Groups[:1]
	f.mustApply(t)
}

// A consumer far behind reads events of a window that is over, and leaves them out. Then its retention is
// raised, and the rest of the events comes. The window must not open with only that part, without a mark.
func TestARaisedRetentionDoesNotBeginAWindowHalfway(t *testing.T) {
	f := someone(t)
	over, before := f.past("over", retention+time.Minute), f.past("before", retention+8*24*time.Hour)
	comes := func(w ledger.Window, points int64) {
		t.Helper()
		m := f.member("u1", points)
		m.Time = w.End - 1000
		f.piece.Windows[0], f.piece.Groups = w, []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{m}}}
		f.mustApply(t)
	}
	comes(over, 5)
	comes(before, 5)
	f.store = f.storeOf(t, func(c *Config) {
		p := c.Periods["weekly"]
		p.Retention += 30 * 24 * time.Hour
		c.Periods["weekly"] = p
	})
	comes(over, 7)
	comes(before, 7)
	require.False(t, f.client.HExists(t.Context(), f.store.keys.Windows(), over.Listing()).Val())
	require.False(t, f.client.HExists(t.Context(), f.store.keys.Windows(), before.Listing()).Val())
	require.NotContains(t, contents(t, f.client, f.prefix), strings.TrimPrefix(f.key(0), f.prefix))

	// Nothing was left out of the next window, nor of another period's.
	next := f.past("next", retention-6*24*time.Hour)
	comes(next, 7)
	require.NotEmpty(t, f.listing(t, next))
	month := next
	month.Period = "monthly"
	comes(month, 7)
	require.NotEmpty(t, f.listing(t, month))

	// A listed window is complete, whatever was left out of others: a rebuild may have listed it.
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), over.Listing(), entry(over.Start, over.End, time.Now().Add(time.Hour).UnixMilli())).Err())
	f.piece.Windows[0] = over
	require.NoError(t, f.client.ZAdd(t.Context(), f.key(0), redis.Z{Score: 12, Member: "u1"}).Err())
	comes(over, 5)
	require.InDelta(t, 17.0, f.client.ZScore(t.Context(), f.key(0), "u1").Val(), 0.999)
}

func TestAListedWindowLivesAsLongAsItsListingSays(t *testing.T) {
	f := someone(t)
	w := f.past("late", retention+time.Minute) // over by the current retention
	f.piece.Windows[0] = w
	expires := time.Now().Add(time.Hour).UnixMilli()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), w.Listing(), entry(w.Start, w.End, expires)).Err())
	require.NoError(t, f.client.ZAdd(t.Context(), f.key(0), redis.Z{Score: 3, Member: "u1"}).Err())
	m := f.member("u1", 5)
	m.Time = w.End - 1
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{m}}}
	f.mustApply(t)
	require.InDelta(t, 8.0, f.client.ZScore(t.Context(), f.key(0), "u1").Val(), 0)
}

func TestAKeyExpiresADayAfterItsRetention(t *testing.T) {
	f := fixed(t)
	all := ledger.Window{Board: "global", Period: "all-time", Name: "all", Start: 0, End: periods.MaxTime}
	f.store = f.storeOf(t, func(c *Config) {
		layout, err := codec.New(codec.Readable, periods.AllTime.Length(), 99_999_999)
		require.NoError(t, err)
		c.Periods[periods.AllTime] = Period{Layout: layout, Retention: 800 * 24 * time.Hour}
	})
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Schema(), f.store.Schema(), 0).Err())
	f.piece.Windows = append(f.piece.Windows[:2:2], all)
	f.add(t, f.member("u1", 10))
	for n, w := range f.piece.Windows {
		expires := w.End + f.store.periods[w.Period].Retention.Milliseconds()
		require.Equal(t, entry(w.Start, w.End, expires), f.listing(t, w))
		f.expiresAt(t, f.key(n), expires+day)
	}
	// A second piece changes neither, whatever the retention is now.
	listed := f.listing(t, all)
	f.store.periods["all-time"] = Period{Layout: f.store.periods["all-time"].Layout, Retention: time.Hour}
	f.add(t, f.member("u1", 10))
	require.Equal(t, listed, f.listing(t, all))
}

func TestAPieceThatCannotBeIsAFaultAndNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fixture)
		says  string
	}{
		"a time past its window": {func(f *fixture) {
			f.piece.Groups[0].Members = append(f.piece.Groups[0].Members, ledger.Member{ID: []byte("u2"), Time: f.piece.Windows[0].End})
		}, "ends at"},
		"a window longer than its layout": {func(f *fixture) { f.piece.Windows[0].Start -= 8 * day }, "doesn't fit its layout"},
		"an empty window":                 {func(f *fixture) { f.piece.Windows[0].Start = f.piece.Windows[0].End }, "doesn't fit its layout"},
		"an unknown period":               {func(f *fixture) { f.piece.Windows[0].Period = "hourly" }, `no period "hourly"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := someone(t)
			c.spoil(f)
			f.unchanged(t, func() {
				_, _, err := f.store.Apply(t.Context(), &f.piece)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "apply events/3 from 10 to 20: ")
				require.Equal(t, ledger.Halt, Classify(err))
				require.False(t, redisconn.Unreachable(err))
			})
		})
	}
}

func TestAnAnswerThatIsNoneOfOursIsAFault(t *testing.T) {
	for _, reply := range [][]any{{}, {"later"}, {int64(1)}, {1.5}, {nil}, {"refused"}, {"refused", "overflow"}, {"refused", "envy", "u1"}} {
		_, err := answer(reply)
		require.Error(t, err)
		require.Equal(t, ledger.Halt, Classify(fmt.Errorf("apply: %w", err)))
	}
	_, err := answer([]any{})
	require.NotErrorIs(t, err, redis.Nil)
}

// More members than one command takes, more values than unpack takes, and the 5,000 pairs of member and
// window that the design allows in a piece.
func TestALargePieceIsOnePiece(t *testing.T) {
	for _, shape := range []struct{ members, windows int }{{1000, 3}, {1001, 3}, {1667, 3}, {2500, 2}, {5000, 1}, {9001, 1}} {
		f := fixed(t)
		var members []ledger.Member
		var ids []string
		var names []ledger.Name
		for i := range shape.members {
			ids = append(ids, fmt.Sprint("u", i))
			members = append(members, f.member(ids[i], int64(i)))
			names = append(names, ledger.Name{Text: fmt.Append(nil, "n", i), Time: int64(i)})
		}
		for range 2 {
			f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}[:shape.windows], Members: members, Names: names}}
			f.mustApply(t)
		}
		called := f.names(t, ids...)
		require.Len(t, called, shape.members)
		for i, id := range ids {
			require.Equal(t, fmt.Sprint("n", i), called[id])
		}
		for n := range shape.windows {
			require.Equal(t, int64(shape.members), f.client.ZCard(t.Context(), f.key(n)).Val())
			b, err := f.store.Top(t.Context(), "global", f.window(n), 0, shape.members)
			require.NoError(t, err)
			for i, s := range b.Standings {
				require.Equal(t, int64(2*(shape.members-1-i)), s.Points)
			}
		}
	}
}
