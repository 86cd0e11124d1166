package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// byRule sets the rule of the fixture's board; "" is the default rule.
func (f *fixture) byRule(t testing.TB, text string) *rules.Rule {
	t.Helper()
	var r *rules.Rule
	f.store = f.storeOf(t, func(c *Config) {
		if text == "" {
			return
		}
		one, err := rules.ParseRule(text)
		require.NoError(t, err)
		r = &one
		ruled := &Ruled{Rule: r, Layouts: map[periods.Period]codec.TupleLayout{}}
		for p := range c.Periods {
			ruled.Layouts[p], err = codec.NewTupleLayout(codec.Readable, p.Length(), one.Fields)
			require.NoError(t, err)
		}
		c.Boards = map[string]*Ruled{f.piece.Windows[0].Board: ruled}
	})
	return r
}

// A window's listing has the rule of its scores. A store with another rule neither adds to the window nor
// shows it.
func TestAWindowIsWrittenAndReadByItsRuleAlone(t *testing.T) {
	const ours = "best(stage:999,revives:99:fewest)"
	f := fixed(t)
	r := f.byRule(t, ours)
	value := r.Value(&codec.Tuple{42, 3}, f.now)
	f.add(t, ledger.Member{ID: []byte("u"), Points: value.Packed, Time: value.Time})
	w := f.piece.Windows[0]
	require.Equal(t, ours, listingOf(t, f.listing(t, w)).Rule)
	b, err := f.store.Top(t.Context(), w.Board, f.window(0), 0, 10)
	require.NoError(t, err)
	require.Equal(t, []codec.Tuple{{42, 3}}, []codec.Tuple{b.Standings[0].Tuple})
	require.Equal(t, r.Fields, b.Fields)
	require.WithinDuration(t, time.UnixMilli(f.now), b.Standings[0].ReachedAt, b.Tick)
	score, err := f.client.ZScore(t.Context(), f.key(0), "u").Result()
	require.NoError(t, err)
	require.Equal(t, int64(4296), int64(score), "any client sees the fields side by side")
	others, err := f.store.OtherRules(t.Context())
	require.NoError(t, err)
	require.Empty(t, others)

	for _, other := range []string{"", "best(stage:999,revives:98:fewest)", "last(stage:999,revives:99:fewest)"} {
		f.byRule(t, other)
		f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
		f.unchanged(t, func() {
			answer := f.apply(t)
			require.Equal(t, ledger.OtherRule, answer.Outcome, other)
			require.Equal(t, f.listing(t, w), answer.Found)
		})
		_, err := f.store.Top(t.Context(), w.Board, f.window(0), 0, 10)
		var wrong *RuleError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, RuleError{w.Listing(), ours, other}, *wrong)
		others, err := f.store.OtherRules(t.Context())
		require.NoError(t, err)
		require.Len(t, others, len(f.piece.Windows))
		require.Contains(t, others, &RuleError{w.Listing(), ours, other})
	}
}

// An overflow names the window, the field, and the value that the field would have.
func TestAnOverflowByARuleSaysWhere(t *testing.T) {
	for _, text := range []string{"sum(gold:9,lives:5:fewest)", "sum(net:9:signed)", "sum(lives:5:fewest)"} {
		f := fixed(t)
		r := f.byRule(t, text)
		first := f.piece.Windows[0]
		first.Start, first.End = 0, 0
		beyond := func(member string, values codec.Tuple) ledger.Beyond {
			t.Helper()
			v := r.Value(&values, f.now)
			f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
			f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{
				{ID: []byte("other"), Points: 0, Time: f.now}, {ID: []byte(member), Points: v.Packed, Time: v.Time},
			}}}
			a := f.apply(t)
			require.Equal(t, []ledger.Refusal{{Member: member, Reason: ledger.Overflow}}, a.Refused)
			require.Len(t, a.Beyond, 1)
			require.Equal(t, member, a.Beyond[0].Member)
			require.Equal(t, first, a.Beyond[0].Window)
			return a.Beyond[0]
		}
		at := func(b ledger.Beyond) [2]int64 { return [2]int64{int64(b.Field), b.Digit} }
		switch r.Fields.Len() {
		case 2:
			v := r.Value(&codec.Tuple{8, 3}, f.now)
			f.add(t, ledger.Member{ID: []byte("u"), Points: v.Packed, Time: v.Time})
			require.Equal(t, [2]int64{1, 10}, at(beyond("u", codec.Tuple{2, 0})))
			require.Equal(t, [2]int64{1, -1}, at(beyond("u", codec.Tuple{-9, 0})))
			require.Equal(t, [2]int64{2, -1}, at(beyond("u", codec.Tuple{1, 3})), "6 lives are one more than it goes down from")
			require.Equal(t, [2]int64{2, 6}, at(beyond("u", codec.Tuple{0, -4})))
			require.Equal(t, [2]int64{1, 10}, at(beyond("u", codec.Tuple{2, 3})), "the first of two")
		default:
			if r.Fields.At(0).Signed {
				require.Equal(t, [2]int64{1, -18}, at(beyond("u", codec.Tuple{-18})))
			} else {
				require.Equal(t, [2]int64{1, -1}, at(beyond("u", codec.Tuple{6})))
			}
		}
	}
	f := fixed(t)
	f.byRule(t, "sum(gold:9,silver:9)")
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{{ID: []byte("u"), Points: rules.Beyond, Time: f.now}}}}
	window := f.piece.Windows[0]
	window.Start, window.End = 0, 0
	require.Equal(t, []ledger.Beyond{{Member: "u", Window: window}}, f.apply(t).Beyond, "nobody knows by how much")
}
