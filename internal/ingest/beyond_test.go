package ingest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

func TestWhatAnOverflowSaysOfAField(t *testing.T) {
	t.Parallel()
	others := rules.Boards{}
	for board, text := range map[string]string{
		"medals": "sum(gold:99,silver:9)", "net": "sum(net:5:signed)", rules.AnyBoard: "sum(lives:3:fewest)",
	} {
		r, err := rules.ParseRule(text)
		require.NoError(t, err)
		others[board] = &r
	}
	week := func(board string) ledger.Window {
		return ledger.Window{Board: board, Period: "weekly", Name: "2026-W47"}
	}
	for want, at := range map[string]ledger.Beyond{
		"gold of board medals would be 103, outside of 0 to its max of 99, in weekly 2026-W47":       {Window: week("medals"), Field: 1, Digit: 103},
		"silver of board medals would be -1, outside of 0 to its max of 9, in weekly 2026-W47":       {Window: week("medals"), Field: 2, Digit: -1},
		"net of board net would be -6, outside of its max of ±5, in weekly 2026-W47":                 {Window: week("net"), Field: 1, Digit: -6},
		"lives of board eu would be 4, outside of 0 to its max of 3, in weekly 2026-W47":             {Window: week("eu"), Field: 1, Digit: -1},
		"a field of board medals (gold to 99, silver to 9) would leave its range in weekly 2026-W47": {Window: week("medals")},
		"a standing would leave ±1000 points, or the range of a field":                               {Window: week("net"), Field: 2},
	} {
		b := &batch{by: &rulebook.Book{Events: event.Rules{MaxPoints: 1000, Others: others}}}
		at.Member = "u"
		b.keepBeyond([]ledger.Beyond{at})
		require.Equal(t, want, b.why([]byte("u"), ledger.Overflow))
		require.Equal(t, "a window would be opened beyond max_windows, or in its last tenth on a board that has none", b.why([]byte("u"), ledger.WindowLimit))
	}
	points := &batch{by: &rulebook.Book{Events: event.Rules{MaxPoints: 1000}}}
	require.Equal(t, "a standing would leave ±1000 points", points.why([]byte("u"), ledger.Overflow))
}

func TestWhatADeadLetterSaysOfARefusalIsOneShortLine(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 64)
	r, err := rules.ParseRule("sum(" + name + ":99)")
	require.NoError(t, err)
	b := &batch{Batch: fold.New(new(fold.Rules), endless{}, 1<<20), by: &rulebook.Book{Events: event.Rules{Others: rules.Boards{name: &r}}}}
	for _, user := range []string{strings.Repeat("\x00\n", 128), strings.Repeat("é", 128), "u"} {
		b.beyond = nil
		b.keepBeyond([]ledger.Beyond{{Member: user, Window: ledger.Window{Board: name, Period: "weekly", Name: "2026-W47"}, Field: 1, Digit: 103}})
		text := b.refusalMessage([]byte(user), ledger.Overflow)
		require.LessOrEqual(t, len(text), 200)
		require.True(t, utf8.ValidString(text))
		require.NotContains(t, text, "\n")
		require.Contains(t, text, name+" of board "+name+" would be 103, outside of 0 to its max of 99, ")
	}
}

func TestWhatIsKeptOfFieldsHasABound(t *testing.T) {
	t.Parallel()
	b := &batch{by: &rulebook.Book{}}
	for i := range 3 * maxBeyond {
		b.keepBeyond([]ledger.Beyond{{Member: fmt.Sprint("u", i)}})
	}
	require.Len(t, b.beyond, maxBeyond)
}
