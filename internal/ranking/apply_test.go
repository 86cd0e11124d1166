package ranking

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// After a call an encoder keeps neither references to the piece nor the buffers of a piece with thousands
// of windows.
func TestAnEncoderKeepsNothingOfAPiece(t *testing.T) {
	f := offlineFixture(t)
	e := new(encoder)
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u1", 1)}}}
	_, err := e.encode(f.store, &f.piece, "20")
	require.NoError(t, err)
	small := cap(e.args)
	e.release()
	require.Equal(t, small, cap(e.args), "a usual piece is encoded without allocating")
	for _, arg := range e.args[:cap(e.args)] {
		require.Nil(t, arg)
	}
	for n := range 4000 {
		w := f.piece.Windows[0]
		w.Board = fmt.Sprint("b", n)
		f.piece.Windows = append(f.piece.Windows, w)
		f.piece.Groups = append(f.piece.Groups, ledger.Group{Windows: []int{len(f.piece.Windows) - 1}, Members: []ledger.Member{f.member("u1", 1)}})
	}
	_, err = e.encode(f.store, &f.piece, "20")
	require.NoError(t, err)
	require.Greater(t, cap(e.args), argsKept)
	e.release()
	require.Zero(t, cap(e.args))
}
