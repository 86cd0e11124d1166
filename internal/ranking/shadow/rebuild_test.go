package shadow

// A rebuild's lock, lease, hold and swap: what each refuses, and that a refusal changes nothing.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

const lease = time.Minute

// rebuilding returns a fixture with a live board, u1 with 10 points and u2 with 5, and a rebuild whose
// shadow has u1 with 7 at the same position: the live board was modified.
func rebuilding(t testing.TB) (*fixture, *Rebuild) {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.Begin(t)
	f.Add(t, f.Member("u1", 10), f.Member("u2", 5))
	return f, f.rebuild(t, f.Member("u1", 7))
}

// rebuild starts a rebuild whose shadow is at the live ledger's positions.
func (f *fixture) rebuild(t testing.TB, members ...ledger.Member) *Rebuild {
	t.Helper()
	r, err := Lock(t.Context(), f.Store, "me", lease)
	require.NoError(t, err)
	f.fold(t, r, ledger.Origin{}, members...)
	return r
}

// fold starts a partition of the shadow at the log's start, and brings it to the live ledger's position.
func (f *fixture) fold(t testing.TB, r *Rebuild, origin ledger.Origin, members ...ledger.Member) {
	t.Helper()
	begun, err := r.Shadow().Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(0), Origin: &origin}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	p := f.NewPiece()
	p.Expected, p.Next = ledger.At(0), ledger.At(f.Next)
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: members}}
	if len(members) == 0 {
		p.Groups = nil
	}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, a)
}

func (f *fixture) held(t testing.TB, r *Rebuild) {
	t.Helper()
	require.NoError(t, r.Hold(t.Context(), lease))
}

func TestASwapPutsWhatTheLogSaysInThePlaceOfTheBoards(t *testing.T) {
	f, r := rebuilding(t)
	before := rankingtest.Contents(t, f.Client, f.Prefix)
	expires := f.Piece.Windows[0].End + retention.Milliseconds() + day
	f.ExpiresAt(t, f.Key(0), expires)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Len(t, p.Windows, 3)
	for n := range 3 {
		require.Equal(t, map[string]int64{"u1": 7}, f.Points(t, n))
		require.Equal(t, Replaced, p.Windows[n].Action)
	}
	f.ExpiresAt(t, f.Key(0), expires) // it expires with its window
	f.MustApply(t)                    // the hold is gone, and the ledger is unchanged
	_, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err, "asked again, it has swapped")

	require.NoError(t, r.Unlink(t.Context(), 0))
	require.NoError(t, r.Close(t.Context()))
	after := rankingtest.Contents(t, f.Client, f.Prefix)
	require.Len(t, after, len(before)-4-3-1, "shadow and lock are gone, and nothing else has come: %v", after)
}

func TestASecondRebuildIsToldOfTheFirst(t *testing.T) {
	f := someone(t)
	before := time.Now().Add(-time.Second)
	r, err := Lock(t.Context(), f.Store, "host-1", lease)
	require.NoError(t, err)
	_, err = Lock(t.Context(), f.Store, "host-2", lease)
	after := time.Now().Add(time.Second)
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "host-1", busy.Owner)
	require.WithinRange(t, busy.Began, before, after)
	require.WithinRange(t, busy.Until, before.Add(lease), after.Add(lease))
	require.ErrorContains(t, err, fmt.Sprintf("a rebuild of %q is under way already: by host-1, since ", f.Prefix))
	require.NoError(t, r.Close(t.Context()))
	_, err = Lock(t.Context(), f.Store, "host-2", lease)
	require.NoError(t, err)
	require.NoError(t, r.Close(t.Context()), "another's lock is left alone")
	_, err = Lock(t.Context(), f.Store, "host-3", lease)
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "host-2", busy.Owner)
}
