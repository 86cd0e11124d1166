package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// After a rebuild the names from the log are present, and other names of the live boards are unchanged.
func TestARebuildNamesMembers(t *testing.T) {
	f := someone(t)
	r := f.rebuild(t, f.member("u1", 7), f.member("u2", 3), f.member("u3", 1))
	said := func(s *ranking.Store, names ...ledger.Name) {
		t.Helper()
		p := f.newPiece()
		p.Expected, p.Next = ledger.At(f.next), ledger.At(f.next+1)
		g := ledger.Group{Windows: []int{0, 1, 2}, Names: names}
		for i := range names {
			g.Members = append(g.Members, f.member([]string{"u1", "u2", "u3"}[i], 1))
		}
		p.Groups = []ledger.Group{g}
		a, _, err := s.Apply(t.Context(), &p)
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
	}
	said(f.store, ledger.Name{Text: []byte("Ada"), Time: 5}, ledger.Name{Text: []byte("Bob"), Time: 9}, ledger.Name{})
	said(r.Shadow().Store, ledger.Name{Text: []byte("Eve"), Time: 6}, ledger.Name{Text: []byte("Bo"), Time: 8}, ledger.Name{Text: []byte("Cy"), Time: 1})
	require.NoError(t, r.Renew(t.Context()))
	require.Positive(t, f.client.PTTL(t.Context(), r.Shadow().Keys().Names()).Val(), "a rebuild that dies leaves nothing")
	f.held(t, r)
	_, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.NoError(t, r.Renew(t.Context()))
	require.NoError(t, r.Unlink(t.Context(), time.Millisecond))
	names, err := f.store.Names(t.Context(), []string{"u1", "u2", "u3"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"u1": "Eve", "u2": "Bob", "u3": "Cy"}, names)
	require.Negative(t, f.client.PTTL(t.Context(), f.store.Keys().Names()).Val(), "the live ones have no end")
	require.Zero(t, f.client.Exists(t.Context(), r.Shadow().Keys().Names()).Val())
}
