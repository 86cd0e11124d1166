package ranking

// Tests the limit on windows.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// limited returns a fixture with a limit on windows, and the three windows of global.
func limited(t testing.TB, windows int64) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.store = f.storeOf(t, func(c *Config) { c.MaxWindows = windows })
	f.begin(t)
	f.add(t, f.member("u1", 10))
	return f
}

// of appends the windows of a board to the piece and returns their indexes.
func (f *fixture) of(board string) (numbers []int) {
	for _, w := range f.newPiece().Windows {
		w.Board = board
		numbers = append(numbers, len(f.piece.Windows))
		f.piece.Windows = append(f.piece.Windows, w)
	}
	return numbers
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

// one sends a piece that adds to a member in one window, and returns the answer.
func (f *fixture) one(t testing.TB, w ledger.Window) ledger.Answer {
	t.Helper()
	f.piece = f.newPiece()
	f.piece.Windows = []ledger.Window{w}
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u1", 1)}}}
	a := f.apply(t)
	if a.Outcome == ledger.Applied {
		f.next += 10
	}
	return a
}

// At 36 of 40 windows, a board without a window can't open one. Boards with a window can open more, up to
// 40.
func TestTheLastTenthOfTheWindowsIsForBoardsThatHaveOne(t *testing.T) {
	f := limited(t, 40)
	calendar := f.newPiece().Windows
	at := func(board string, n int) ledger.Window {
		w := calendar[n]
		w.Board = board
		return w
	}
	refused := ledger.Answer{Outcome: ledger.Refusing, Refused: []ledger.Refusal{{Member: "u1", Reason: ledger.WindowLimit}}}
	applied := ledger.Answer{Outcome: ledger.Applied}
	for i := range 33 { // in addition to the three of global
		require.Equal(t, applied, f.one(t, at(fmt.Sprint("b", i), 0)))
	}
	looks := 0
	f.client.AddHook(eavesdropper(func(args []any) error {
		if strings.EqualFold(fmt.Sprint(args[0]), "hscan") {
			looks++
		}
		return nil
	}))
	for i := range 20 {
		require.Equal(t, refused, f.one(t, at(fmt.Sprint("new", i), i%3)))
	}
	require.Equal(t, 1, looks, "however many boards there are, the listing is read once in a while")
	require.Equal(t, int64(36), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())
	f.store.opened.boards = nil // the cache has expired
	require.Equal(t, applied, f.one(t, at("b7", 1)))
	require.Equal(t, 2, looks)

	// A call that waits while another one reads the listing ends with its context.
	f.store.opened.turn <- struct{}{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.store.haveWindows(ended, nil)
	require.ErrorIs(t, err, context.Canceled)
	<-f.store.opened.turn

	// If the call has another window of the board, the script needs no listing. A new board's event counts
	// nowhere.
	f.store.opened.boards = nil
	f.piece = f.newPiece()
	f.piece.Windows = []ledger.Window{at("b8", 1), at("b8", 0)}
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1}, Members: []ledger.Member{f.member("u1", 1)}}}
	f.mustApply(t)
	require.Equal(t, 2, looks)
	f.piece = f.newPiece()
	f.piece.Windows = []ledger.Window{at("b9", 1), at("new", 0), at("b9", 2)}
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1}, Members: []ledger.Member{f.member("u1", 1)}}, {Windows: []int{2}, Members: []ledger.Member{f.member("u2", 1)}}}
	require.Equal(t, refused, f.check(t))
	f.answers(t, refused)
	f.piece.Windows = []ledger.Window{at("b9", 1), at("b10", 1), at("b9", 2)}
	f.answers(t, ledger.Answer{Outcome: ledger.Refusing, Refused: []ledger.Refusal{{Member: "u2", Reason: ledger.WindowLimit}}})
	f.piece.Groups = f.piece.Groups[:1]
	f.mustApply(t)
	require.Equal(t, int64(40), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())
	require.Equal(t, refused, f.one(t, at("b11", 1)), "there is no room at all")
	// If Redis doesn't return the boards, nothing is written and nothing is refused.
	f.store = f.storeOf(t, func(c *Config) { c.MaxWindows = 42 })
	f.client.AddHook(eavesdropper(func(args []any) error {
		if strings.EqualFold(fmt.Sprint(args[0]), "hscan") {
			return errors.New("LOADING Redis is loading")
		}
		return nil
	}))
	f.piece = f.newPiece()
	f.piece.Windows = []ledger.Window{at("b11", 1)}
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u1", 1)}}}
	f.unchanged(t, func() {
		_, _, err := f.store.Apply(t.Context(), &f.piece)
		require.ErrorContains(t, err, "see which boards have a window")
	})
}
