package ranking

import (
	"fmt"
	"testing"
	"time"

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

func TestTheNameOfTheLatestEventCounts(t *testing.T) {
	f := fixed(t)
	f.called(t, "u1", "Ada", 50)
	require.Equal(t, map[string]string{"u1": "Ada"}, f.names(t, "u1", "u2"))
	f.called(t, "u1", "Eve", 49) // an earlier event
	f.called(t, "u1", "", 99)    // without a name
	require.Equal(t, "Ada", f.names(t, "u1")["u1"])
	f.called(t, "u1", "Adb", 50)
	f.called(t, "u1", "Aa", 50)
	require.Equal(t, "Adb", f.names(t, "u1")["u1"], "of one time the greatest bytes")
	f.called(t, "u1", "Adb", 60) // the same name, later
	f.called(t, "u1", "Zoe", 59)
	require.Equal(t, "Adb", f.names(t, "u1")["u1"])
	f.called(t, "u1", "é \x00 1 2", 61)
	require.Equal(t, "é \x00 1 2", f.names(t, "u1")["u1"])
}

func TestAPieceOfManyMembersNamesThemAll(t *testing.T) {
	f := fixed(t)
	g := ledger.Group{Windows: []int{0, 1, 2}}
	const members = 2500 // more than a command takes
	for i := range members {
		g.Members = append(g.Members, f.member(fmt.Sprint("u", i), 1))
		g.Names = append(g.Names, ledger.Name{Text: fmt.Append(nil, "n", i), Time: int64(i)})
	}
	f.piece.Groups = []ledger.Group{g}
	f.mustApply(t)
	var ids []string
	for i := range members {
		ids = append(ids, fmt.Sprint("u", i))
	}
	names := f.names(t, ids...)
	require.Len(t, names, members)
	for i, id := range ids {
		require.Equal(t, fmt.Sprint("n", i), names[id])
	}
}

// A member with a window keeps the name. The name is removed two days after the last window.
func TestANameGoesWithTheLastWindow(t *testing.T) {
	f := fixed(t)
	f.called(t, "u1", "Ada", 50)
	f.called(t, "u2", "Bob", 50)
	two := time.Now().Add(-RetireAfter).UnixMilli()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Names(), "u1", fmt.Sprintf("50 %d Ada", two-2000), "u2", fmt.Sprintf("50 %d Bob", two+3_600_000)).Err())
	dropped, err := f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Zero(t, dropped)
	require.Equal(t, map[string]string{"u1": "Ada", "u2": "Bob"}, f.names(t, "u1", "u2"), "no window has gone")
	f.list(t, "global:weekly:2020-W01", entry(1, 2, two-2000))
	dropped, err = f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, dropped)
	require.Equal(t, map[string]string{"u2": "Bob"}, f.names(t, "u1", "u2"))
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
