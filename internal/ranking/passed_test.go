package ranking

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// at returns the ledger at an offset.
func (f *fixture) at(offset int64) map[string]string {
	return map[string]string{f.piece.Partition.String(): fmt.Sprint(offset)}
}

func (f *fixture) sealOf(t testing.TB) Seal {
	t.Helper()
	seal, err := f.store.SealOf(t.Context(), f.piece.Windows[0].Listing())
	require.NoError(t, err)
	return seal
}

// passes advances the ledger without the first window.
func (f *fixture) passes(t testing.TB) {
	t.Helper()
	windows := f.piece.Windows
	f.piece.Windows, f.piece.Without = windows[1:], []string{windows[0].Listing()}
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1}, Members: []ledger.Member{f.member("a", 1)}}}
	f.mustApply(t)
	f.piece = f.newPiece()
}

func (f *fixture) reopen(t testing.TB) {
	t.Helper()
	_, err := f.store.Unseal(t.Context(), f.piece.Windows[0].Listing(), time.Now(), "a test")
	require.NoError(t, err)
}

func TestWhatPassesAFinalWindowByIsNotedWithItsNextRevisions(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5)) // ledger at 10
	f.mustSeal(t, 1)
	require.Empty(t, f.sealOf(t).Passed)
	f.passes(t) // ledger at 20
	require.Equal(t, f.at(10), f.sealOf(t).Ledger)
	f.reopen(t)
	one := []PassedBetween{{f.at(10), f.at(20)}}
	require.Equal(t, one, f.sealOf(t).Passed)
	require.Equal(t, "a test", f.sealOf(t).Reopened)
	f.add(t, f.member("a", 1)) // ledger at 30
	f.mustSeal(t, 2)
	require.Equal(t, one, f.sealOf(t).Passed)
	require.Equal(t, f.at(30), f.sealOf(t).Ledger)
	require.Equal(t, int64(2), f.sealOf(t).Revision)
	f.passes(t) // ledger at 40
	f.reopen(t)
	f.mustSeal(t, 3)
	two := append(one, PassedBetween{f.at(30), f.at(40)})
	require.Equal(t, two, f.sealOf(t).Passed)

	final := f.client.HGetAll(t.Context(), f.store.keys.Final()).Val()
	require.Len(t, final, 6)
	record, err := ParseSealRecord(final[f.piece.Windows[0].Listing()])
	require.NoError(t, err)
	require.NoError(t, f.client.HDel(t.Context(), f.store.keys.Final(), fmt.Sprintf("@%d", record.Passed[0].To.UnixMicro())).Err())
	require.True(t, f.sealOf(t).Unknown)
	require.Equal(t, two[1:], f.sealOf(t).Passed)
}

func TestLedgersStayAsLongAsARecordNamesThem(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	final := map[string]string{f.piece.Windows[0].Listing(): `{"at":15,"passed":[[11,12],[13,14]],"revision":3}`}
	for _, instant := range []string{"@11", "@12", "@13", "@14", "@15"} {
		final[instant] = "[]"
	}
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Final(), final).Err())
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Final(), "@16", "[]").Err())
	require.NoError(t, f.store.forgetSealings(t.Context()))
	require.Equal(t, final, f.client.HGetAll(t.Context(), f.store.keys.Final()).Val())
}

// A script that ends between its writes, for example for lack of a right, has recorded the reopening but
// not removed the seal. Events that come before the next call are missing in the window too.
func TestWhatPassesByUntilAReopeningIsCalledAgainIsNoted(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5)) // ledger at 10
	f.mustSeal(t, 1)
	listing := f.sealing(t).Listing
	f.reopen(t)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), f.piece.Windows[0].Listing(), listing).Err())
	f.passes(t) // ledger at 20
	f.reopen(t)
	require.Equal(t, []PassedBetween{{f.at(10), f.at(20)}}, f.sealOf(t).Passed)
}

// A reshard copies the shard under a hold: its new shards would lack the reopening.
func TestNothingIsReopenedWhileItIsHeld(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	f.mustSeal(t, 1)
	name := f.piece.Windows[0].Listing()
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Hold(), "me", 0).Err())
	f.unchanged(t, func() {
		_, err := f.store.Unseal(t.Context(), name, time.Now(), "a test")
		require.ErrorIs(t, err, ErrHeld)
	})
	require.NoError(t, f.client.Del(t.Context(), f.store.keys.Hold()).Err())
	f.reopen(t)
}

func TestARecordOfASealIsReadOrRefused(t *testing.T) {
	at := func(us int64) time.Time { return time.UnixMicro(us) }
	passed := []Passed{{at(3), at(4)}, {at(5), at(6)}}
	for text, want := range map[string]SealRecord{
		`{"at":7,"revision":1}`:                                                     {Revision: 1, At: at(7)},
		`{"at":7,"passed":[[3,4],[5,6]],"revision":2}`:                              {Revision: 2, At: at(7), Passed: passed},
		`{"at":7,"passed":[[3,4],[5,6]],"revision":2,"why":"1-2 all"}`:              {Revision: 2, At: at(7), Passed: passed, Why: "1-2 all"},
		`{"at":7,"reopened":8,"revision":2}`:                                        {Revision: 2, At: at(7), Reopened: time.UnixMilli(8)},
		`{"at":7,"passed":[[3,4],[5,6]],"reopened":8,"revision":2,"why":"\"x\" 9"}`: {Revision: 2, At: at(7), Passed: passed, Reopened: time.UnixMilli(8), Why: `"x" 9`},
	} {
		is, err := ParseSealRecord(text)
		require.NoError(t, err, text)
		require.Equal(t, want, is, text)
		require.Equal(t, text, is.Text())
	}
	for _, text := range []string{"", "1", "1 7", "{}", `{"at":7}`, `{"revision":1}`, `{"at":"7","revision":1}`, `{"at":7,"passed":[3,4],"revision":1}`, `{"at":7,"reopened":"x","revision":1}`} {
		_, err := ParseSealRecord(text)
		require.Error(t, err, text)
	}
}
