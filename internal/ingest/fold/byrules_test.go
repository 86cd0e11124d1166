package fold

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	boardrules "github.com/standings/standings/internal/rules"
)

func ruled(t testing.TB, text string) *boardrules.Rule {
	t.Helper()
	r, err := boardrules.ParseRule(text)
	require.NoError(t, err)
	return &r
}

// ruledBoards returns boards with the default rule and with each of the other three. One board has a single
// period.
func ruledBoards(t testing.TB) *Rules {
	t.Helper()
	r := rules(t)
	ticks := map[periods.Period]int64{"weekly": 7_000, "monthly": 60_000, "yearly": 3_600_000}
	best := ruled(t, "best(stage:9,revives:9:fewest)")
	r.Boards = map[string]*Board{
		"global": {Periods: math.MaxUint32}, "arena": {Rule: best, Periods: 1, Ticks: ticks}, "cup": {Rule: best, Periods: 7, Ticks: ticks},
		"medals": {Rule: ruled(t, "sum(gold:99,silver:99)"), Periods: 7, Ticks: ticks}, "elo": {Rule: ruled(t, "last(elo:9)"), Periods: 6, Ticks: ticks},
	}
	return r
}

// A batch's value in a window equals the values of its events merged one by one, in any order.
func TestABatchIsWhatItsEventsComeToByEachRule(t *testing.T) {
	r := ruledBoards(t)
	before := []*Rules{r, ruledBoards(t), rules(t)} // the process that takes over a sweep has other rules of its own
	start := int64(1_715_000_000_000)               // 2024-05-06, a Monday
	rapid.Check(t, func(t *rapid.T) {
		b := New(rapid.SampledFrom(before).Draw(t, "rules before"), plenty{}, 1<<30)
		b.By(r)
		b.Reset(0, ledger.Reading{}, ledger.AllAt(0, 1), ledger.AllAt(0, 1))
		want := map[string]boardrules.Value{}
		names := []string{"global", "arena", "cup", "medals", "elo"}
		for i := range rapid.IntRange(1, 30).Draw(t, "events") {
			e := Event{Offset: int64(i), User: []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "user")), Points: rapid.Int64Range(-5, 5).Draw(t, "points")}
			e.Hash = Hash(e.User)
			e.Time = start + rapid.Int64Range(0, 40*86_400_000).Draw(t, "time")
			e.RecordTime = e.Time
			var tuples []boardrules.Tuple
			others := false
			for _, name := range names {
				if !rapid.Bool().Draw(t, name) {
					continue
				}
				e.Boards = append(e.Boards, []byte(name))
				tuple := boardrules.Tuple{}
				switch name {
				case "arena", "cup": // one rule, so one tuple
					tuple = boardrules.Tuple{int64(i) % 4, int64(i) % 3}
				case "medals":
					tuple = boardrules.Tuple{rapid.Int64Range(-2, 2).Draw(t, "gold"), rapid.Int64Range(-2, 2).Draw(t, "silver")}
				case "elo":
					tuple = boardrules.Tuple{rapid.Int64Range(0, 9).Draw(t, "elo")}
				}
				others = others || name != "global"
				tuples = append(tuples, tuple)
			}
			if len(e.Boards) == 0 {
				continue
			}
			if others {
				e.Tuples = tuples
			}
			result, err := b.Add(&e)
			require.NoError(t, err)
			windows, left, err := r.Windows(e.Boards, e.Time, e.RecordTime)
			require.NoError(t, err)
			if len(windows) == 0 {
				require.Equal(t, left, result)
				continue
			}
			require.Equal(t, Added, result)
			for j, name := range e.Boards {
				board := r.Boards[string(name)]
				for _, w := range windows {
					all, _, err := r.Windows([][]byte{name}, e.Time, e.RecordTime)
					require.NoError(t, err)
					if !slices.Contains(all, w) {
						continue
					}
					key := fmt.Sprintf("%s %s:%s:%s", e.User, name, w.Period, w.Name)
					v := boardrules.Value{Packed: e.Points, Time: ledger.NoTime}
					if e.Points > 0 {
						v.Time = e.Time
					}
					if board.Rule != nil {
						at := e.Time
						if board.Rule.Score == boardrules.Last {
							at = boardrules.Cut(w.Start, w.End, board.Ticks[w.Period], at)
						}
						v = board.Rule.Value(&tuples[j], at)
					}
					had, ok := want[key]
					switch {
					case !ok:
					case board.Rule == nil:
						v = boardrules.Value{Packed: had.Packed + v.Packed, Time: max(had.Time, v.Time)}
					default:
						v = board.Rule.Merge(had, v)
					}
					want[key] = v
				}
			}
		}
		b.MoveTo(100)
		var p Pieces
		p.Reset(b, ledger.Partition{}, 0, ledger.At(0))
		got := map[string]boardrules.Value{}
		for {
			piece, _, ok := p.Next(10)
			if !ok {
				break
			}
			for _, g := range piece.Groups {
				for _, w := range g.Windows {
					require.Equal(t, r.of(piece.Windows[g.Windows[0]].Board).Rule, r.of(piece.Windows[w].Board).Rule, "a group is by one rule")
					for _, m := range g.Members {
						got[string(m.ID)+" "+piece.Windows[w].Listing()] = boardrules.Value{Packed: m.Points, Time: m.Time}
					}
				}
			}
		}
		b.Release()
		require.Equal(t, want, got)
	})
}

// plenty is unlimited memory.
type plenty struct{}

func (plenty) Take(int64) bool { return true }
func (plenty) Release(int64)   {}

// The rules of a sweep that another process started keep that process's lists and get the periods that were
// added since: on all boards, and on boards that list their periods.
func TestRulesHaveThePeriodsThatOthersHaveInAddition(t *testing.T) {
	all := rules(t)
	weekly, monthly, yearly := all.Periods[0], all.Periods[1], all.Periods[2]
	last, best := ruled(t, "last(elo:9)"), ruled(t, "best(elo:9)")
	weekly.Lateness = 7
	began := Rules{Periods: []Period{weekly}, Boards: map[string]*Board{"elo": {Rule: last, Periods: 1, Ticks: map[periods.Period]int64{"weekly": 1}}, "cup": {Rule: best, Periods: 1}}, Names: true}
	later := Rules{Periods: []Period{yearly, all.Periods[0], monthly}, Boards: map[string]*Board{
		"elo": {Rule: ruled(t, "last(elo:9)"), Periods: 6, Ticks: map[periods.Period]int64{"weekly": 3, "monthly": 4}}, "cup": {Rule: last, Periods: 7}, "arena": {Periods: 3},
	}}
	of := began.With(&later)
	names := func(board string) (all []string) {
		for i, p := range of.Periods {
			if of.PeriodsOf([][]byte{[]byte(board)})&(1<<i) != 0 {
				all = append(all, string(p.Rule.Name()))
			}
		}
		return all
	}
	require.Equal(t, []string{"weekly", "monthly"}, names("elo"))
	require.Equal(t, map[periods.Period]int64{"weekly": 1, "monthly": 4}, of.Boards["elo"].Ticks)
	require.Equal(t, []string{"weekly"}, names("cup"), "which has another rule now, and windows of that")
	require.Equal(t, []string{"weekly", "yearly"}, names("arena"))
	require.Equal(t, []string{"weekly", "yearly", "monthly"}, names("any"))
	require.Equal(t, int64(7), of.Periods[0].Lateness)
	require.True(t, of.Names)
	require.Len(t, began.Periods, 1)
	require.Equal(t, uint32(1), began.Boards["elo"].Periods)

	of = (&Rules{Periods: []Period{weekly}}).With(&Rules{Periods: []Period{monthly, weekly}})
	require.Nil(t, of.Boards)
	require.Equal(t, []string{"weekly", "monthly"}, names("any"))
}
