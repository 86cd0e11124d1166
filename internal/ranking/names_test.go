package ranking

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// called applies an event with a name to all windows.
func (f *fixture) called(t tester, id, name string, at int64) {
	t.Helper()
	f.piece.Groups = []ledger.Group{{
		Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member(id, 1)}, Names: []ledger.Name{{Text: []byte(name), Time: at}},
	}}
	f.mustApply(t)
}

func (f *fixture) names(t tester, ids ...string) map[string]string {
	t.Helper()
	names, err := f.store.Names(t.Context(), ids)
	require.NoError(t, err)
	return names
}

func TestAnErasedMemberIsCalledNothing(t *testing.T) {
	alone(t)
	f := fixed(t)
	for _, id := range []string{"u1", "u2", "u3"} {
		f.called(t, id, "Name of "+id, 50)
	}
	require.NoError(t, f.store.Ban(t.Context(), Ban{Member: "u1", Erased: true}))
	require.NoError(t, f.store.Ban(t.Context(), Ban{Member: "u2"}))
	require.NoError(t, f.store.Ban(t.Context(), Ban{Board: "eu", Member: "u3", Erased: true}))
	want := map[string]string{"u2": "Name of u2", "u3": "Name of u3"}
	require.Equal(t, want, f.names(t, "u1", "u2", "u3"))
	f.called(t, "u1", "Again", 60)
	require.Equal(t, want, f.names(t, "u1", "u2", "u3"))
	require.NoError(t, f.store.MergeNames(t.Context(), []string{"u1", "70 99 Rebuilt", "u2", "40 99 Older", "u3", "80 99 Newer"}))
	want["u3"] = "Newer"
	require.Equal(t, want, f.names(t, "u1", "u2", "u3"))
}
