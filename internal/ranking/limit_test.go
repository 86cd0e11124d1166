package ranking

// How many windows there may be.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/testenv"
)

// limited is a fixture whose boards may have so many windows, with the three of global.
func limited(t testing.TB, windows int64) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.store = f.storeOf(t, func(c *Config) { c.MaxWindows = windows })
	f.begin(t)
	f.add(t, f.member("u1", 10))
	return f
}

// of are the windows of a board, behind those that the piece has; it returns their
// numbers.
func (f *fixture) of(board string) (numbers []int) {
	for _, w := range f.newPiece().Windows {
		w.Board = board
		numbers = append(numbers, len(f.piece.Windows))
		f.piece.Windows = append(f.piece.Windows, w)
	}
	return numbers
}

func TestAWindowBeyondTheLimitIsNotOpenedAndItsMembersAreNamed(t *testing.T) {
	f := limited(t, 7)
	eu, us := f.of("eu"), f.of("us")
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{
		{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member("u1", 1), f.member("u2", 1)}},
		{Windows: eu, Members: []ledger.Member{f.member("u3", 1)}},
		{Windows: us, Members: []ledger.Member{f.member("u4", 1), f.member("u5", 1)}},
		{Windows: us[:1], Members: []ledger.Member{f.member("u6", 1)}}, // the seventh
	}
	f.answers(t, ledger.Answer{Outcome: ledger.Refusing, Refused: []ledger.Refusal{
		{Member: "u4", Reason: ledger.WindowLimit}, {Member: "u5", Reason: ledger.WindowLimit},
	}})
	// Without them it is in, and then there is no room at all.
	f.piece.Groups = append(f.piece.Groups[:2], f.piece.Groups[3])
	f.piece.Windows = f.piece.Windows[:us[0]+1]
	f.mustApply(t)
	require.Equal(t, int64(7), f.client.HLen(t.Context(), f.store.keys.windows()).Val())
	f.piece = f.newPiece()
	asia := f.of("asia")
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{{Windows: asia[2:], Members: []ledger.Member{f.member("u1", 1)}}}
	f.answers(t, ledger.Answer{Outcome: ledger.Refusing, Refused: []ledger.Refusal{{Member: "u1", Reason: ledger.WindowLimit}}})
	// Where there are more than that by another configuration, those that are listed go on.
	f.store = f.storeOf(t, func(c *Config) { c.MaxWindows = 1 })
	f.piece = f.newPiece()
	f.add(t, f.member("u1", 1))
}

func TestAMemberIsRefusedForOneReasonAndOverWindowsTakeNoRoom(t *testing.T) {
	f := limited(t, 3)
	eu := f.of("eu")
	over := f.of("over")
	for _, n := range over {
		f.piece.Windows[n].Start -= 4000 * day
		f.piece.Windows[n].End -= 4000 * day
	}
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{
		{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member("rich", 99_999_999+1)}},
		{Windows: eu, Members: []ledger.Member{f.member("rich", 1)}},
		{Windows: over, Members: []ledger.Member{{ID: []byte("late"), Points: 1, Time: ledger.NoTime}}},
	}
	f.answers(t, ledger.Answer{Outcome: ledger.Refusing, Refused: []ledger.Refusal{{Member: "rich", Reason: ledger.Overflow}}})
	f.piece.Groups = f.piece.Groups[2:]
	f.mustApply(t)
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.windows()).Val())
}

// shadowed adds u2 to a window of each of some boards, in a shadow; where the live ledger
// is to come there too, f.mustApply does.
func (f *fixture) shadowed(t testing.TB, r *Rebuild, boards ...string) {
	t.Helper()
	p := f.newPiece()
	week := p.Windows[0]
	p.Windows = nil
	p.Expected, p.Next = ledger.At(f.next), ledger.At(f.next+10)
	for i, board := range boards {
		week.Board = board
		p.Windows = append(p.Windows, week)
		p.Groups = append(p.Groups, ledger.Group{Windows: []int{i}, Members: []ledger.Member{f.member("u2", 1)}})
	}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, a)
}

// fatesByBoard are the fates of a plan's windows by board.
func fatesByBoard(p *Plan) map[string]Fate {
	all := map[string]Fate{}
	for i := range p.Windows {
		all[p.Windows[i].Board] = p.Windows[i].Fate
	}
	return all
}

// What is refused in a shadow has no dead letter, and who is refused is so on every board.
func TestAShadowHasNoLimitAndASwapOpensNoWindowBeyondIt(t *testing.T) {
	f := limited(t, 4)
	r := f.rebuild(t, f.member("u1", 10))
	f.shadowed(t, r, "us", "eu", "asia")
	f.piece.Groups = nil
	f.mustApply(t)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Fate{"global": Replaced, "asia": Replaced, "eu": LeftOut, "us": LeftOut}, fatesByBoard(p))
	for _, w := range p.Windows {
		if w.Fate == LeftOut {
			require.Equal(t, "it isn't there, and would be beyond max_windows, 4", w.Why)
		}
	}
	require.Equal(t, int64(4), f.client.HLen(t.Context(), f.store.keys.windows()).Val())
	week := f.newPiece().Windows[0]
	for board, is := range map[string]int64{"global": 1, "asia": 1, "eu": 0, "us": 0} {
		week.Board = board
		require.Equal(t, is, f.client.Exists(t.Context(), f.store.keys.window(&week)).Val(), board)
	}
	require.Equal(t, map[string]int64{"u1": 10}, f.points(t, 0))
}

// As after max_windows was lowered.
func TestARebuildReplacesEveryWindowThatIsListedAlsoAboveTheLimit(t *testing.T) {
	f := limited(t, 100)
	f.store = f.storeOf(t, func(c *Config) { c.MaxWindows = 2 })
	r := f.rebuild(t, f.member("u1", 15))
	f.shadowed(t, r, "us")
	f.piece.Groups = nil
	f.mustApply(t)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Fate{"global": Replaced, "us": LeftOut}, fatesByBoard(p))
	for n := range 3 {
		require.Equal(t, map[string]int64{"u1": 15}, f.points(t, n))
	}
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.windows()).Val())
}

// It is in the log that has been read to where the live boards are that nobody is in it.
func TestAWindowThatIsDroppedMakesRoomOnceTheLogIsRead(t *testing.T) {
	f := limited(t, 6)
	f.both(t, f.member("u1", 5))
	r := f.rebuild(t, f.member("u1", 15))
	f.shadowed(t, r, "us")
	p, err := r.Plan(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Fate{"global": Replaced, "eu": Replaced, "us": LeftOut}, fatesByBoard(p))
	f.piece.Groups = nil
	f.mustApply(t)
	f.held(t, r)
	p, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]Fate{"global": Replaced, "eu": Dropped, "us": Replaced}, fatesByBoard(p))
	require.Equal(t, int64(4), f.client.HLen(t.Context(), f.store.keys.windows()).Val())
}

// The window was counted in, and its listing is what was lost: as long as its key is there
// and it isn't listed, partitions halt.
func TestAWindowWhoseKeyIsThereIsReplacedAlsoAboveTheLimit(t *testing.T) {
	f := limited(t, 3)
	week := f.newPiece().Windows[0]
	require.NoError(t, f.client.HDel(t.Context(), f.store.keys.windows(), week.Listing()).Err())
	f.store = f.storeOf(t, func(c *Config) { c.MaxWindows = 1 })
	r := f.rebuild(t, f.member("u1", 10))
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	for _, w := range p.Windows {
		require.Equal(t, Replaced, w.Fate)
	}
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.windows()).Val())
	f.add(t, f.member("u1", 1))
}
