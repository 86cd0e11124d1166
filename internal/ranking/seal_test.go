package ranking

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// ended returns a fixture with events in a week that ended ten days ago, the first of its windows. The year
// and perhaps the month haven't ended.
func ended(t testing.TB) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.now -= 10 * day
	f.piece = f.newPiece()
	f.begin(t)
	return f
}

// sealing returns the piece's first window as the shard lists it.
func (f *fixture) sealing(t testing.TB) Sealing {
	t.Helper()
	name := f.piece.Windows[0].Listing()
	listing := f.client.HGet(t.Context(), f.store.keys.Windows(), name).Val()
	return Sealing{Name: name, Listing: listing, As: listing, Lateness: 24 * time.Hour}
}

// far returns log ends that the ledger has reached.
func (f *fixture) far() map[ledger.Partition]int64 {
	return map[ledger.Partition]int64{f.piece.Partition: f.next}
}

func (f *fixture) mustSeal(t testing.TB, revision int64) {
	t.Helper()
	w := f.sealing(t)
	sealed, err := f.store.Seal(t.Context(), f.far(), []Sealing{w})
	require.NoError(t, err)
	require.Equal(t, []Sealed{{Name: w.Name, Revision: revision}}, sealed)
	require.Equal(t, revision, listingOf(t, f.sealing(t).Listing).Final)
}

func TestNothingIsSealedBeforeItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		changes func(f *fixture, w *Sealing, before map[ledger.Partition]int64)
		why     Unsealed
		err     error
	}{
		"it takes events still":  {changes: func(_ *fixture, w *Sealing, _ map[ledger.Partition]int64) { w.Lateness = 11 * 24 * time.Hour }, why: StillOpen},
		"it is listed otherwise": {changes: func(_ *fixture, w *Sealing, _ map[ledger.Partition]int64) { w.Listing += "0" }, why: OtherListing},
		"it isn't listed any more": {changes: func(f *fixture, w *Sealing, _ map[ledger.Partition]int64) {
			f.client.HDel(t.Context(), f.store.keys.Windows(), w.Name)
		}, why: OtherListing},
		"it is listed since": {changes: func(_ *fixture, w *Sealing, _ map[ledger.Partition]int64) { w.Listing = "" }, why: OtherListing},
		"its key is gone":    {changes: func(f *fixture, _ *Sealing, _ map[ledger.Partition]int64) { f.client.Del(t.Context(), f.key(0)) }, why: SealLost},
		"it isn't listed, and has a key": {changes: func(f *fixture, w *Sealing, _ map[ledger.Partition]int64) {
			f.client.HDel(t.Context(), f.store.keys.Windows(), w.Name)
			w.Listing = ""
		}, why: SealLost},
		"a partition is behind": {changes: func(f *fixture, _ *Sealing, before map[ledger.Partition]int64) { before[f.piece.Partition]++ }, err: ErrBehind},
		"a partition isn't there": {changes: func(_ *fixture, _ *Sealing, before map[ledger.Partition]int64) {
			before[ledger.Partition{Topic: "events", Number: 9}] = 0
		}, err: ErrBehind},
		"a sweep has begun before": {changes: func(f *fixture, _ *Sealing, before map[ledger.Partition]int64) {
			f.client.HSet(t.Context(), f.store.keys.Ledger(), f.piece.Partition.String(), "8..20@8000000000000000")
			before[f.piece.Partition] = 9
		}, err: ErrBehind},
		"a piece is torn": {changes: func(f *fixture, _ *Sealing, before map[ledger.Partition]int64) {
			f.client.HSet(t.Context(), f.store.keys.Ledger(), f.piece.Partition.String(), "torn:10")
		}, err: ErrBehind},
		"a rebuild is about to swap": {changes: func(f *fixture, _ *Sealing, _ map[ledger.Partition]int64) {
			f.client.Set(t.Context(), f.store.keys.Hold(), "x", 0)
		}, err: ErrHeld},
		"a rebuild is under way": {changes: func(f *fixture, _ *Sealing, _ map[ledger.Partition]int64) {
			f.client.Set(t.Context(), f.store.keys.Rebuild(), "x", 0)
		}, err: ErrRebuilding},
	} {
		t.Run(name, func(t *testing.T) {
			f := ended(t)
			f.add(t, f.member("a", 5))
			w, before := f.sealing(t), f.far()
			c.changes(f, &w, before)
			f.unchanged(t, func() {
				sealed, err := f.store.Seal(t.Context(), before, []Sealing{w})
				if c.err != nil {
					require.ErrorIs(t, err, c.err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, []Sealed{{Name: w.Name, Why: c.why}}, sealed)
			})
		})
	}
}

func TestASweepThatWasBegunLaterIsNoReasonNotToSeal(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Ledger(), f.piece.Partition.String(), "10..20@8000000000000000").Err())
	f.mustSeal(t, 1)
}

func TestTheRevisionAndTheLedgerOfASealGoWithTheWindow(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	f.mustSeal(t, 1)
	name := f.piece.Windows[0].Listing()
	final := f.client.HGetAll(t.Context(), f.store.keys.Final()).Val()
	require.Len(t, final, 2)
	record, err := ParseSealRecord(final[name])
	require.NoError(t, err)
	require.Equal(t, int64(1), record.Revision)
	instant := fmt.Sprint(record.At.UnixMicro())
	require.Equal(t, `{"at":`+instant+`,"revision":1}`, final[name])
	require.JSONEq(t, `["`+f.piece.Partition.String()+`","10"]`, final["@"+instant])

	// After an hour the window is still final.
	require.NoError(t, f.store.forgetSealings(t.Context()))
	require.Equal(t, final, f.client.HGetAll(t.Context(), f.store.keys.Final()).Val())

	old := listingOf(t, f.sealing(t).Listing)
	old.Expires = old.Start
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, old.Text()).Err())
	require.NoError(t, f.client.Del(t.Context(), f.key(0)).Err())
	before := "1" // in 1970
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Final(), "@"+before, "[]").Err())
	n, err := f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, map[string]string{"@" + instant: final["@"+instant]}, f.client.HGetAll(t.Context(), f.store.keys.Final()).Val(),
		"a ledger of the last hour may be that of a call that is under way")
}

// A script that ends between two of its writes, for example for lack of a right, has sealed nothing.
func TestASealThatEndsMidwayIsGoneThroughAgain(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	w := f.sealing(t)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Final(), w.Name, `{"at":1700000000000000,"revision":1}`).Err())
	f.mustSeal(t, 1)
	_, err := f.store.Unseal(t.Context(), w.Name, time.Now(), "a test")
	require.NoError(t, err)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Final(), w.Name, `{"at":1700000000000000,"revision":2}`).Err())
	f.mustSeal(t, 2)
}

func TestWhatIsBehindIsNamed(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	_, err := f.store.Seal(t.Context(), map[ledger.Partition]int64{f.piece.Partition: 480}, []Sealing{f.sealing(t)})
	var behind *BehindError
	require.ErrorAs(t, err, &behind)
	require.Equal(t, BehindError{f.piece.Partition.String(), "10", 480}, *behind)
}

func TestWhyAWindowWasReopenedIsKeptWithItsNextRevision(t *testing.T) {
	f := ended(t)
	f.add(t, f.member("a", 5))
	f.mustSeal(t, 1)
	name := f.piece.Windows[0].Listing()
	record := func() SealRecord {
		t.Helper()
		all, err := f.store.SealRecords(t.Context(), []string{name})
		require.NoError(t, err)
		return all[name]
	}
	require.Empty(t, record().Why)

	const why = "case 12: after 3 days, reopened 1700000000000 by hand"
	_, err := f.store.Unseal(t.Context(), name, time.UnixMilli(1_700_000_000_000), why)
	require.NoError(t, err)
	require.Equal(t, why, record().Why)
	require.Equal(t, int64(1_700_000_000_000), record().Reopened.UnixMilli())
	seal, err := f.store.SealOf(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, why, seal.Reopened)

	f.mustSeal(t, 2)
	require.Equal(t, why, record().Why)
	require.Zero(t, record().Reopened)
	require.Equal(t, int64(2), record().Next())
	seal, err = f.store.SealOf(t.Context(), name)
	require.NoError(t, err)
	require.True(t, seal.Final)
	require.Empty(t, seal.Reopened, "it is final now")
	require.NotEmpty(t, seal.Ledger)

	// After a seal that died before its last write, the next one has the same revision and reason.
	w := f.sealing(t)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, strings.Replace(w.Listing, `"final":2,`, "", 1)).Err())
	f.mustSeal(t, 2)
	require.Equal(t, why, record().Why)

	// The next reopening has its own reason, even an empty one.
	_, err = f.store.Unseal(t.Context(), name, time.Now(), "")
	require.NoError(t, err)
	f.mustSeal(t, 3)
	require.Empty(t, record().Why)
}
