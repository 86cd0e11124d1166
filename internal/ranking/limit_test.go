package ranking

// How many windows there may be.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
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
	require.Equal(t, int64(7), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())
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
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())
}
