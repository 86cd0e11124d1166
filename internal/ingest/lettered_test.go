package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// What was written before another log took the place of one isn't of that one.
func TestWhatIsKnownToBeLettered(t *testing.T) {
	var l lettered
	l.begin(10)
	require.False(t, l.has(10))
	l.acknowledged([]letter{{offset: 12}, {offset: 15}})
	require.True(t, l.has(10))
	require.True(t, l.has(15))
	require.False(t, l.has(16))
	l.begin(14)
	require.True(t, l.has(15), "a flow that goes on within it")
	l.ends(16, 14)
	require.True(t, l.has(15))
	l.ends(15, 14)
	require.False(t, l.has(14), "a log that ends within it is another")
	l.acknowledged([]letter{{offset: 20}})
	l.begin(9)
	require.False(t, l.has(20), "a flow that begins before it has read what is in between")
	l.acknowledged([]letter{{offset: 11}})
	l.begin(13)
	require.False(t, l.has(11))
	w, _ := quiet()
	w.Stats, w.done = new(Stats), lettered{from: 10, to: 20}
	w.movedAway(&movedError{"events/0", ledger.At(15), ""})
	require.False(t, w.done.has(15), "what moved the ledger may be another log, or an operator")
	require.False(t, (*lettered)(nil).acknowledged([]letter{{offset: 1}}))
}

// Of members who are refused only what was written itself is known: who is refused may be
// others the next time.
func TestWhatIsKnownToBeLetteredOfMembersWhoAreRefused(t *testing.T) {
	l := lettered{refused: true}
	l.begin(1000)
	require.True(t, l.acknowledged([]letter{{offset: 1000}, {offset: 1063}, {offset: 1064}, {offset: 1500}}))
	for offset := int64(900); offset < 1600; offset++ {
		require.Equal(t, offset == 1000 || offset == 1063 || offset == 1064 || offset == 1500, l.has(offset), offset)
	}
	l.begin(1000)
	require.True(t, l.acknowledged([]letter{{offset: 1001}}), "of a member who wasn't refused before")
	require.True(t, l.has(1001))
	require.True(t, l.has(1500))
	l.begin(1100)
	require.True(t, l.has(1500))
	require.Len(t, l.noted, 1, "what lies before isn't read again")
	l.ends(1500, 1100)
	require.False(t, l.has(1500), "a log that ends within it is another")
	require.True(t, l.acknowledged([]letter{{offset: 1200}}))
	l.begin(1300)
	require.Empty(t, l.noted)
	for i := range int64(mostNoted) {
		require.True(t, l.acknowledged([]letter{{offset: 2000 + 64*i}}))
	}
	require.True(t, l.acknowledged([]letter{{offset: 2001}}))
	require.False(t, l.acknowledged([]letter{{offset: 2002}, {offset: 2000 + 64*mostNoted}}), "it is bounded")
	require.True(t, l.has(2002))
	require.False(t, l.has(2000+64*mostNoted))
	l.begin(1200)
	require.False(t, l.has(2000), "a flow that begins before it")
	require.Empty(t, l.noted)
}
