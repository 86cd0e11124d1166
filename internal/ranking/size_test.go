package ranking

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

func TestBoardsAndWindowsAreCountedHoweverManyThereAre(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	count := func(boards, windows int) {
		t.Helper()
		b := map[uint64]struct{}{}
		require.NoError(t, f.store.AddBoards(t.Context(), 0, b))
		w, err := f.store.Windows(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int{boards, windows}, []int{len(b), int(w)})
	}
	count(0, 0)
	for i := range 2000 { // several pages of the listing
		f.list(t, fmt.Sprintf("b%d:weekly:2026-W47", i/4*2+i%2), "1 2 3")
		f.list(t, fmt.Sprintf("b%d:monthly:2026-11", i/4*2), "1 2 3")
	}
	count(1000, 1500)
}
