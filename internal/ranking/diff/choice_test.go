package diff

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

func TestEveryNameThatADiffIsGivenHasToFitAWindow(t *testing.T) {
	live := func() []Window {
		of := func(board, period, name string) Window {
			return Window{Window: ledger.Window{Board: board, Period: period, Name: name}}
		}
		return []Window{
			of("eu", "weekly", "2026-W46"), of("eu", "weekly", "2026-W47"),
			of("us", "weekly", "2026-W47"), of("us", "yearly", "2026"),
		}
	}
	d := &Prefixes{A: &ranking.View{Prefix: "lb"}, B: &ranking.View{Prefix: "lb2"}}
	choose := func(boards, periods, windows []string) (int, error) {
		d.Boards, d.Periods, d.Windows = boards, periods, windows
		left, err := d.choose(live())
		return len(left), err
	}
	for _, try := range []struct {
		boards, periods, windows []string
		left                     int
		err                      string
	}{
		{nil, nil, nil, 4, ""},
		{[]string{"us"}, nil, nil, 2, ""},
		{[]string{"us", "eu"}, []string{"yearly"}, nil, 1, ""}, // eu has none, and neither side differs in that
		{nil, nil, []string{"2026-W47"}, 2, ""},
		{[]string{"us", "eux"}, nil, nil, 0, `neither lb nor lb2 has a live window of the board "eux"; there are eu, us`},
		{nil, []string{"daily"}, nil, 0, `neither lb nor lb2 has a live window of the period "daily"; there are yearly, weekly`},
		{[]string{"eu"}, []string{"yearly"}, nil, 0, `neither lb nor lb2 has a live window of the period "yearly" among those asked for; there is weekly`},
		{nil, nil, []string{"2026-W74"}, 0, `neither lb nor lb2 has a live window "2026-W74"; there are 2026-W47, 2026-W46, 2026`},
		{[]string{"eu"}, nil, []string{"2026"}, 0, `neither lb nor lb2 has a live window "2026" among those asked for; there are 2026-W47, 2026-W46`},
	} {
		left, err := choose(try.boards, try.periods, try.windows)
		require.Equal(t, try.left, left)
		if try.err == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, try.err)
	}
	left, err := d.choose(nil)
	require.Empty(t, left)
	require.EqualError(t, err, `neither lb nor lb2 has a live window of the board "eu"; neither has any`)
	d.Boards = nil
	d.Windows = nil
	_, err = d.choose(nil)
	require.NoError(t, err, "two that have nothing are equal")

	there := map[string]bool{}
	for w := range 30 {
		there[string(rune('a'+w%26))+string(rune('a'+w/26))] = true
	}
	text := (&UnmatchedError{A: "lb", B: "lb2", What: "board", Name: "c", There: likest(there, "c")}).Error()
	require.Contains(t, text, "there are cb, ca, za, ya, ")
	require.Contains(t, text, " and 18 more")
}
