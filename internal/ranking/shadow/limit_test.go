package shadow

// The number of windows that a rebuild may open.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// limited returns a fixture with a limit on windows. The board global has three.
func limited(t testing.TB, windows int64) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.Store = f.StoreOf(t, func(c *ranking.Config) { c.MaxWindows = windows })
	f.Begin(t)
	f.Add(t, f.Member("u1", 10))
	return f
}

// shadowed adds u2 to a window of each board in a shadow. f.mustApply brings the live ledger to the same
// position.
func (f *fixture) shadowed(t testing.TB, r *Rebuild, boards ...string) {
	t.Helper()
	p := f.NewPiece()
	week := p.Windows[0]
	p.Windows = nil
	p.Expected, p.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	for i, board := range boards {
		week.Board = board
		p.Windows = append(p.Windows, week)
		p.Groups = append(p.Groups, ledger.Group{Windows: []int{i}, Members: []ledger.Member{f.Member("u2", 1)}})
	}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, a)
}

// actionsByBoard returns the actions of a plan's windows by board.
func actionsByBoard(p *Plan) map[string]Action {
	all := map[string]Action{}
	for i := range p.Windows {
		all[p.Windows[i].Board] = p.Windows[i].Action
	}
	return all
}

// A shadow refuses no window: a rebuild writes no dead letters, and a refused event counts on none of its
// boards.
func TestAShadowHasNoLimitAndASwapOpensNoWindowBeyondIt(t *testing.T) {
	f := limited(t, 4)
	r := f.rebuild(t, f.Member("u1", 10))
	f.shadowed(t, r, "us", "eu", "asia")
	f.Piece.Groups = nil
	f.MustApply(t)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Action{"global": Replaced, "asia": Replaced, "eu": LeftOut, "us": LeftOut}, actionsByBoard(p))
	for _, w := range p.Windows {
		if w.Action == LeftOut {
			require.Equal(t, "it isn't there, and would be beyond max_windows, 4", w.Why)
		}
	}
	require.Equal(t, int64(4), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())
	week := f.NewPiece().Windows[0]
	for board, is := range map[string]int64{"global": 1, "asia": 1, "eu": 0, "us": 0} {
		week.Board = board
		require.Equal(t, is, f.Client.Exists(t.Context(), f.Store.Keys().Window(&week)).Val(), board)
	}
	require.Equal(t, map[string]int64{"u1": 10}, f.Points(t, 0))
}

// This happens after max_windows is lowered.
func TestARebuildReplacesEveryWindowThatIsListedAlsoAboveTheLimit(t *testing.T) {
	f := limited(t, 100)
	f.Store = f.StoreOf(t, func(c *ranking.Config) { c.MaxWindows = 2 })
	r := f.rebuild(t, f.Member("u1", 15))
	f.shadowed(t, r, "us")
	f.Piece.Groups = nil
	f.MustApply(t)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Action{"global": Replaced, "us": LeftOut}, actionsByBoard(p))
	for n := range 3 {
		require.Equal(t, map[string]int64{"u1": 15}, f.Points(t, n))
	}
	require.Equal(t, int64(3), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())
}

// Only when the shadow has read up to the live positions is it certain that a window has no members.
func TestAWindowThatIsDroppedMakesRoomOnceTheLogIsRead(t *testing.T) {
	f := limited(t, 6)
	f.Both(t, f.Member("u1", 5))
	r := f.rebuild(t, f.Member("u1", 15))
	f.shadowed(t, r, "us")
	p, err := r.Plan(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Action{"global": Replaced, "eu": Replaced, "us": LeftOut}, actionsByBoard(p))
	f.Piece.Groups = nil
	f.MustApply(t)
	f.held(t, r)
	p, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Action{"global": Replaced, "eu": Dropped, "us": Replaced}, actionsByBoard(p))
	require.Equal(t, int64(4), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())
}

// Events were counted in the window, and only its listing was lost. Partitions halt as long as its key
// exists and is not listed.
func TestAWindowWhoseKeyIsThereIsReplacedAlsoAboveTheLimit(t *testing.T) {
	f := limited(t, 3)
	week := f.NewPiece().Windows[0]
	require.NoError(t, f.Client.HDel(t.Context(), f.Store.Keys().Windows(), week.Listing()).Err())
	f.Store = f.StoreOf(t, func(c *ranking.Config) { c.MaxWindows = 1 })
	r := f.rebuild(t, f.Member("u1", 10))
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	for _, w := range p.Windows {
		require.Equal(t, Replaced, w.Action)
	}
	require.Equal(t, int64(3), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())
	f.Add(t, f.Member("u1", 1))
}

func TestASwapKeepsTheLastTenthForBoardsThatHaveAWindow(t *testing.T) {
	f := limited(t, 10) // the three of global exist
	f.Piece = f.NewPiece()
	f.Windows("here")
	f.Piece.Groups = []ledger.Group{{Windows: []int{4}, Members: []ledger.Member{f.Member("u1", 1)}}} // its month
	f.MustApply(t)
	f.Piece = f.NewPiece()
	r := f.rebuild(t, f.Member("u1", 10))
	f.shadowed(t, r, "a", "b", "c", "d", "e", "f", "g", "here")
	f.Piece.Groups = nil
	f.MustApply(t)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	replaced := 0
	for _, w := range p.Windows {
		if w.Period == "weekly" && w.Board != "global" && w.Action == Replaced {
			replaced++
		}
		if w.Action == LeftOut {
			require.Equal(t, "its board has no window, and the last tenth of max_windows, 10, is for boards that have one", w.Why, w.Board)
		}
	}
	require.Equal(t, LeftOut, actionsByBoard(p)["g"])
	require.Equal(t, 7, replaced, "here too")
}
