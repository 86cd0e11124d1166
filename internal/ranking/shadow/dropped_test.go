package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

func TestARebuildBringsBackWhatWasDropped(t *testing.T) {
	f := limited(t, 100)
	eu := f.both(t, f.member("u1", 5))
	listing := f.piece.Windows[eu[0]].Listing()
	for i := range int(of) {
		if i != shard { // the other shards have started too
			g := newFixture(t, f.client, f.prefix)
			g.store = g.storeOf(t, func(c *ranking.Config) { c.Shard = i })
			g.begin(t)
		}
	}
	v, err := ranking.NewView(t.Context(), f.client, f.prefix, of, 20*time.Second)
	require.NoError(t, err)
	found, err := v.SurveyBoards(t.Context(), func(name string) bool { return name == "eu" })
	require.NoError(t, err)
	_, err = v.DropBoards(t.Context(), found, 0, nil)
	require.NoError(t, err)
	r := f.rebuild(t, f.member("u1", 15))
	found, err = v.SurveyBoards(t.Context(), func(string) bool { return true })
	require.NoError(t, err)
	f.unchanged(t, func() {
		_, err = v.DropBoards(t.Context(), found, 0, nil)
		require.ErrorIs(t, err, ranking.ErrRebuilding)
	})
	p := f.newPiece()
	for i := range p.Windows {
		p.Windows[i].Board = "eu"
	}
	p.Expected, p.Next = ledger.At(f.next), ledger.At(f.next+10)
	a, _, err := f.store.Apply(t.Context(), &p) // the live ledger moves on, and eu has no members
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member("u1", 5)}}}
	a, _, err = r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	f.next += 10
	f.held(t, r)
	_, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.True(t, f.client.HExists(t.Context(), f.store.Keys().Windows(), listing).Val())
	require.Zero(t, f.client.Exists(t.Context(), f.store.Keys().Dropped()).Val())
	f.both(t, f.member("u1", 1))
	b, err := f.store.Top(t.Context(), "eu", f.window(0), 0, 10)
	require.NoError(t, err)
	require.Equal(t, int64(6), b.Standings[0].Points)
}
