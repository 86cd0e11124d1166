package deadletter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// After another log has replaced one, the dead letters of the first are no longer known.
func TestWhatIsKnownToBeLettered(t *testing.T) {
	var l Written
	l.Begin(10)
	require.False(t, l.Has(10))
	l.acknowledged([]deadLetter{{offset: 12}, {offset: 15}})
	require.True(t, l.Has(10))
	require.True(t, l.Has(15))
	require.False(t, l.Has(16))
	l.Begin(14)
	require.True(t, l.Has(15), "a flow that goes on within it")
	l.Ends(16, 14)
	require.True(t, l.Has(15))
	l.Ends(15, 14)
	require.False(t, l.Has(14), "a log that ends within it is another")
	l.acknowledged([]deadLetter{{offset: 20}})
	l.Begin(9)
	require.False(t, l.Has(20), "a flow that begins before it has read what is in between")
	l.acknowledged([]deadLetter{{offset: 11}})
	l.Begin(13)
	require.False(t, l.Has(11))
	require.False(t, (*Written)(nil).acknowledged([]deadLetter{{offset: 1}}))
}

// For refused members, only the dead letters that were written are known: the next time, other members may be
// refused.
func TestWhatIsKnownToBeLetteredOfMembersWhoAreRefused(t *testing.T) {
	l := Written{Refused: true}
	l.Begin(1000)
	require.True(t, l.acknowledged([]deadLetter{{offset: 1000}, {offset: 1063}, {offset: 1064}, {offset: 1500}}))
	for offset := int64(900); offset < 1600; offset++ {
		require.Equal(t, offset == 1000 || offset == 1063 || offset == 1064 || offset == 1500, l.Has(offset), offset)
	}
	l.Begin(1000)
	require.True(t, l.acknowledged([]deadLetter{{offset: 1001}}), "of a member who wasn't refused before")
	require.True(t, l.Has(1001))
	require.True(t, l.Has(1500))
	l.Begin(1100)
	require.True(t, l.Has(1500))
	require.Len(t, l.noted, 1, "what lies before isn't read again")
	l.Ends(1500, 1100)
	require.False(t, l.Has(1500), "a log that ends within it is another")
	require.True(t, l.acknowledged([]deadLetter{{offset: 1200}}))
	l.Begin(1300)
	require.Empty(t, l.noted)
	for i := range int64(mostNoted) {
		require.True(t, l.acknowledged([]deadLetter{{offset: 2000 + 64*i}}))
	}
	require.True(t, l.acknowledged([]deadLetter{{offset: 2001}}))
	require.False(t, l.acknowledged([]deadLetter{{offset: 2002}, {offset: 2000 + 64*mostNoted}}), "it is bounded")
	require.True(t, l.Has(2002))
	require.False(t, l.Has(2000+64*mostNoted))
	l.Begin(1200)
	require.False(t, l.Has(2000), "a flow that begins before it")
	require.Empty(t, l.noted)
}
