package shadow

// A rebuild that takes over without a hold: the shadow's ledger may be behind the live one.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

func TestATakeoverMovesTheLedgerBackAndTheBoardsAreRefilledUpToWhereItWas(t *testing.T) {
	for live, refill := range map[string]int64{
		"10": 0, "25": 25, "torn:25": 25, "torn:10": 0,
		"10..30@00000000000000ff": 30, "torn:10..30@00000000000000ff": 30,
	} {
		t.Run(live, func(t *testing.T) {
			f, r := rebuilding(t)
			f.field(t, f.Store, "events/3", live)
			p, err := r.TakeOver(t.Context(), Choice{})
			require.NoError(t, err)
			require.Len(t, p.Windows, 3)
			for n := range 3 {
				require.Equal(t, map[string]int64{"u1": 7}, f.Points(t, n))
			}
			st, err := f.Store.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, "10", st.Ledger["events/3"])
			require.Equal(t, refill, st.Refills["events/3"])
			require.Equal(t, refill > 0, st.Rebuilt["events/3"])
			_, err = r.TakeOver(t.Context(), Choice{})
			require.NoError(t, err, "once more: the answer may have been lost")
		})
	}
}

func TestATakeoverComparesEverythingInTheCallThatWrites(t *testing.T) {
	moved := func(live, shadow string) error { return &MovedError{Field: "events/3", Live: live, Shadow: shadow} }
	for name, c := range map[string]struct {
		spoil func(t *testing.T, f *fixture, r *Rebuild)
		want  error
	}{
		"there is a hold":       {func(t *testing.T, f *fixture, r *Rebuild) { f.text(t, r.live.Keys().Hold(), "other") }, ErrUnheld},
		"the lock is another's": {func(t *testing.T, f *fixture, r *Rebuild) { f.text(t, r.live.Keys().Rebuild(), "other") }, ErrLost},
		"a window was listed": {func(t *testing.T, f *fixture, r *Rebuild) {
			f.list(t, r.live, "eu:weekly:x", `{"end":2,"expires":9999999999999,"start":1}`)
		}, ErrListed},
		"the live ledger is behind": {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "9") }, moved("9", "10")},
		"it is behind in a sweep": {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "9..20@00000000000000ff") },
			moved("9..20@00000000000000ff", "10")},
		"it is no position":        {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "soup") }, moved("soup", "10")},
		"a partition was added":    {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/4", "0") }, new(MovedError)},
		"the shadow is in a sweep": {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.shadow, "events/3", "5..20@00000000000000ff") }, moved("10", "5..20@00000000000000ff")},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := rebuilding(t)
			p, err := r.plan(t.Context(), Choice{})
			require.NoError(t, err)
			require.NoError(t, p.readyToTakeOver())
			c.spoil(t, f, r)
			f.Unchanged(t, func() { requireSame(t, c.want, r.swap(t.Context(), p, "")) })
		})
	}
}

// In a kept window, an event that is read again would count twice.
func TestATakeoverThatWouldKeepAWindowIsRefusedUnlessTheWindowIsFinal(t *testing.T) {
	f, r := rebuilding(t)
	listing := f.Listing(t, f.Piece.Windows[0])
	f.list(t, f.Store, "eu:weekly:old", strings.ReplaceAll(listing, `"start":`, `"start":1`))
	_, err := r.TakeOver(t.Context(), Choice{Boards: []string{"global"}})
	require.ErrorIs(t, err, ErrKeeps)
	require.True(t, (&Plan{Windows: []Planned{{Window: ledger.Window{}, Action: Kept}}}).Keeps())
	require.False(t, (&Plan{Windows: []Planned{{Action: Kept, final: true}, {Action: Replaced}, {Action: Dropped}, {Action: LeftOut}}}).Keeps())
}
