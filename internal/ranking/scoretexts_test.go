package ranking

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
)

// A script gets scores as texts. A wide score between 2^63 and 1e21 can be written as an integer of 20
// digits, without a point or an exponent, which doesn't fit 64 bits. Every read and every change must parse
// it correctly.
func TestAWideScoreIsReadWhateverItsText(t *testing.T) {
	f := fixedAs(t, codec.Wide, 15<<30)
	w := f.window(0)
	const first = float64(1 << 64)
	points, ticks, err := f.store.periods[string(w.Period)].Layout.Decode(first)
	require.NoError(t, err)
	require.Zero(t, ticks)
	members := membersOf(f.store, 3)
	for i, id := range members {
		m := f.member(id, points-int64(i))
		m.Time = w.End - 1
		f.add(t, m)
	}
	read := func(q Query) Part {
		t.Helper()
		q.Board, q.Window, q.Ties = "global", w, true
		p, err := f.store.Read(t.Context(), &q)
		require.NoError(t, err)
		return p
	}
	top := func() []string {
		t.Helper()
		p, all := read(Query{Rows: Rows{From: FromTop, Below: 10}}), []string{}
		for _, s := range p.Standings {
			all = append(all, fmt.Sprintf("%s %d %d more", s.Member, s.Points-points, s.More))
		}
		return all
	}
	require.Equal(t, []string{members[0] + " 0 0 more", members[1] + " -1 1 more", members[2] + " -2 2 more"}, top())

	// Below a pivot, whether or not its member exists.
	for pivot, want := range map[Pivot]string{
		{Score: first, Member: members[0]}: members[1],
		{Score: first}:                     members[1], // below the members with at least this score
	} {
		p := read(Query{Rows: Rows{From: FromNext, Pivot: pivot, Below: 1}})
		require.Len(t, p.Standings, 1)
		require.Equal(t, want, p.Standings[0].Member)
	}

	// A hidden member has the rank that they would have, still gets points, and returns with them.
	require.NoError(t, f.store.Ban(t.Context(), Ban{Member: members[1]}))
	require.Equal(t, []string{members[0] + " 0 0 more", members[2] + " -2 1 more"}, top())
	p := read(Query{Members: members[1:2], Hidden: true})
	require.Equal(t, int64(2), p.Standings[0].Rank)
	last := f.member(members[1], 3)
	last.Time = w.End - 1
	f.add(t, last)
	require.NoError(t, f.store.Unban(t.Context(), Ban{Member: members[1]}))
	require.Equal(t, []string{members[1] + " 2 0 more", members[0] + " 0 1 more", members[2] + " -2 2 more"}, top())

	// The change is refused because of the points, not the text.
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member(members[0], 15<<30)}}}
	f.refuses(t, members[0])
}
