package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestThePriceOfAPieceIsItsMemberWindows(t *testing.T) {
	require.Zero(t, new(Piece).Width())
	rapid.Check(t, func(t *rapid.T) {
		var p Piece
		want := 0
		for range rapid.IntRange(0, 5).Draw(t, "groups") {
			g := Group{
				Windows: make([]int, rapid.IntRange(0, 8).Draw(t, "windows")),
				Members: make([]Member, rapid.IntRange(0, 50).Draw(t, "members")),
			}
			for range g.Windows {
				for range g.Members {
					want++
				}
			}
			p.Groups = append(p.Groups, g)
		}
		require.Equal(t, want, p.Width())
	})
}

func TestAWindowIsListedUnderItsBoardPeriodAndName(t *testing.T) {
	require.Equal(t, "global:weekly:2026-W47", Window{Board: "global", Period: "weekly", Name: "2026-W47"}.Listing())
}

func TestAnOriginComesBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Origin{Offset: rapid.Int64Min(0).Draw(t, "offset"), Time: rapid.Int64Min(0).Draw(t, "time")}
		if rapid.Bool().Draw(t, "known") {
			o.Log = Log{rapid.StringMatching(`[A-Za-z0-9_-]{22}`).Draw(t, "topic"), rapid.Int32Min(0).Draw(t, "epoch")}
		}
		got, err := ParseOrigin(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	})
	for _, text := range []string{"", "1", "1 ", " 1", "x 1", "1 x", "1 2 3", "1  2"} {
		_, err := ParseOrigin(text)
		require.ErrorContains(t, err, "origin", "%q", text)
	}
}

func TestEveryOutcomeAndVerdictHasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := Applied; o <= Fits; o++ {
		seen[o.String()] = true
	}
	for v := Retry; v <= Refuse; v++ {
		seen[v.String()] = true
	}
	require.Len(t, seen, int(Fits)+1+int(Refuse)+1)
	require.Len(t, outcomes, int(Fits)+1)
}
