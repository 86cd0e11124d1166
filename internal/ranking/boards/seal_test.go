package boards

import (
	"fmt"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

var points = ledger.Partition{Topic: "points"}

// overdue returns a fixture with members in last week's window, and one in this week's.
func overdue(t *testing.T, of ledger.Shards, members int) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), of, codec.Readable)
	f.put(t, f.standing("now", 1, 1))
	var calendar periods.Calendar
	var err error
	f.window, err = calendar.At(periods.Weekly, time.Now().AddDate(0, 0, -10).UnixMilli())
	require.NoError(t, err)
	for i := range members {
		f.put(t, f.standing(fmt.Sprint("m", i), 5, 1))
	}
	return f
}

func (f *fixture) due(t *testing.T, lateness time.Duration) []Due {
	t.Helper()
	now, _, err := f.Clocks(t.Context())
	require.NoError(t, err)
	all, err := f.Due(t.Context(), now, now, func(w ledger.Window) (time.Duration, bool) { return lateness, w.Period == "weekly" }, 0)
	require.NoError(t, err)
	return all
}

// late returns the outcome of an event for the window, by shard.
func (f *fixture) late(t *testing.T) (all []ledger.Outcome) {
	t.Helper()
	w := ledger.Window{Board: f.board, Period: "weekly", Name: f.window.Name, Start: f.window.Start, End: f.window.End}
	for i, s := range f.Shards() {
		var member string
		for n := 0; ; n++ {
			if member = fmt.Sprint("late", n); f.Of().Of(xxhash.Sum64String(member)) == i {
				break
			}
		}
		a, err := s.Check(t.Context(), &ledger.Piece{Partition: points, Expected: ledger.At(10), Next: ledger.At(11), Windows: []ledger.Window{w},
			Groups: []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{{ID: []byte(member), Points: 1, Time: w.Start}}}}})
		require.NoError(t, err)
		all = append(all, a.Outcome)
	}
	return all
}

func (f *fixture) all(o ledger.Outcome) []ledger.Outcome {
	var all []ledger.Outcome
	for range f.Shards() {
		all = append(all, o)
	}
	return all
}

func TestAWindowIsFinalOnEveryShardOrDue(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		for _, members := range []int{1, 40} {
			t.Run(fmt.Sprint(of, " shards, ", members, " members"), func(t *testing.T) {
				f := overdue(t, of, members)
				require.Empty(t, f.due(t, 20*24*time.Hour), "it takes events still")
				due := f.due(t, 24*time.Hour)
				require.Len(t, due, 1)
				name := due[0].Listing()
				require.Equal(t, f.board+":weekly:"+f.window.Name, name)
				require.Equal(t, f.all(ledger.Fits), f.late(t))

				_, err := f.Seal(t.Context(), map[ledger.Partition]int64{points: 11}, due)
				require.ErrorIs(t, err, ranking.ErrBehind)
				before := map[ledger.Partition]int64{points: 10}
				sealed, err := f.Seal(t.Context(), before, due)
				require.NoError(t, err)
				require.Equal(t, Sealing{Final: []string{name}}, sealed)
				require.Empty(t, f.due(t, 24*time.Hour))
				require.Equal(t, f.all(ledger.Sealed), f.late(t))
				b, err := f.Top(t.Context(), f.board, f.window, 0, 10)
				require.NoError(t, err)
				require.Equal(t, int64(1), b.Revision)
				require.Equal(t, int64(members), b.Members)
				require.Empty(t, b.Lost)

				// An unseal took effect on one shard, and its process died: Seal makes the window final on
				// all shards again.
				_, err = f.Shards()[0].Unseal(t.Context(), name, time.Now(), "a test")
				require.NoError(t, err)
				b, err = f.Top(t.Context(), f.board, f.window, 0, 10)
				require.NoError(t, err)
				require.Zero(t, b.Revision)
				again := f.due(t, 24*time.Hour)
				require.Len(t, again, 1)
				sealed, err = f.Seal(t.Context(), before, again)
				require.NoError(t, err)
				require.Equal(t, Sealing{Final: []string{name}}, sealed)
				b, err = f.Top(t.Context(), f.board, f.window, 0, 10)
				require.NoError(t, err)
				require.Equal(t, int64(2), b.Revision)

				was, err := f.Unseal(t.Context(), due[0].Window, time.Now().Add(time.Hour), "a test")
				require.NoError(t, err)
				require.Equal(t, int64(2), was)
				require.Empty(t, f.due(t, 24*time.Hour), "it was reopened for an hour")
				require.Equal(t, f.all(ledger.Fits), f.late(t))
				_, err = f.Unseal(t.Context(), due[0].Window, time.Now(), "a test")
				require.ErrorIs(t, err, ranking.ErrNotFinal)
			})
		}
	}
}

// The window is reopened and sealed again, then one shard is rolled back to before it was reopened. That
// shard has the previous revision, so the window is due until all shards have the same one.
func TestAWindowOfTwoRevisionsIsDue(t *testing.T) {
	f := overdue(t, 3, 40)
	before := map[ledger.Partition]int64{points: 10}
	seal := func() []Due {
		due := f.due(t, 24*time.Hour)
		require.Len(t, due, 1)
		sealed, err := f.Seal(t.Context(), before, due)
		require.NoError(t, err)
		require.Len(t, sealed.Final, 1)
		return due
	}
	w := seal()[0].Window
	k := f.Shards()[1].Keys()
	listing, record := f.client.HGet(t.Context(), k.Windows(), w.Listing()).Val(), f.client.HGet(t.Context(), k.Final(), w.Listing()).Val()
	_, err := f.Unseal(t.Context(), w, time.Now(), "a test")
	require.NoError(t, err)
	seal()
	for _, record := range []string{record, ""} { // the shard may have lost the record too
		require.NoError(t, f.client.HSet(t.Context(), k.Windows(), w.Listing(), listing).Err())
		require.NoError(t, f.client.HDel(t.Context(), k.Final(), w.Listing()).Err())
		if record != "" {
			require.NoError(t, f.client.HSet(t.Context(), k.Final(), w.Listing(), record).Err())
		}
		require.Zero(t, f.closed(t)[0].Revision)
		seal()
		require.Empty(t, f.due(t, 24*time.Hour))
		require.Equal(t, int64(2), f.closed(t)[0].Revision)
	}
}
