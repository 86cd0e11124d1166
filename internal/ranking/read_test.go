package ranking

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
)

func TestABoardSaysWhatItIs(t *testing.T) {
	f := someone(t)
	b, err := f.store.Top(t.Context(), "global", f.window(0), 0, 10)
	require.NoError(t, err)
	b.Standings = nil
	require.Equal(t, map[string]string{"events/3": "10"}, b.Beside.Ledger)
	require.WithinDuration(t, time.Now(), b.Beside.Now, time.Minute)
	require.Equal(t, f.store.Schema(), b.Beside.Schema)
	b.Beside = ledger.State{}
	require.Equal(t, Board{Name: "global", Window: f.window(0), Tick: 10 * time.Millisecond, Members: 1, Listed: true}, b)
	w := f.window(0)
	w.Period = "hourly"
	_, err = f.store.Top(t.Context(), "global", w, 0, 1)
	require.ErrorContains(t, err, `no period "hourly"`)
}

func TestAWindowThatNeverWasOrIsOverIsEmpty(t *testing.T) {
	f := someone(t)
	b, err := f.store.Top(t.Context(), "eu", f.window(0), 0, 10)
	require.NoError(t, err)
	b.Beside = ledger.State{}
	require.Equal(t, Board{Name: "eu", Window: f.window(0), Tick: 10 * time.Millisecond}, b)

	// The key exists for another day, but isn't shown.
	w := f.piece.Windows[0]
	over := entry(w.Start, w.End, time.Now().UnixMilli()-1)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), w.Listing(), over).Err())
	b, err = f.store.Rank(t.Context(), "global", f.window(0), "u1")
	require.NoError(t, err)
	require.False(t, b.Listed)
	require.Equal(t, []Standing{{Member: "u1"}}, b.Standings)
	b, err = f.store.Top(t.Context(), "global", f.window(0), 0, 10)
	require.NoError(t, err)
	require.Empty(t, b.Standings)
	require.Zero(t, b.Members)
}

func TestAWindowOfOtherBoundsIsNotShown(t *testing.T) {
	f := someone(t)
	w := f.window(0)
	w.Start += 3_600_000
	_, err := f.store.Top(t.Context(), "global", w, 0, 10)
	require.ErrorContains(t, err, fmt.Sprintf("listed as [%d, %d) ms", f.window(0).Start, w.End))
	require.ErrorContains(t, err, "no change of time zone rules")
}

func TestAForeignScoreIsNotShownAsPoints(t *testing.T) {
	f := someone(t)
	require.NoError(t, f.client.ZIncrBy(t.Context(), f.key(0), 0x1p-30, "u1").Err())
	require.NoError(t, f.client.Do(t.Context(), "zadd", f.key(0), "1e300", "u1").Err())
	_, err := f.store.Top(t.Context(), "global", f.window(0), 0, 10)
	require.ErrorIs(t, err, codec.ErrScore)
	_, err = f.store.Rank(t.Context(), "global", f.window(0), "u1")
	require.ErrorContains(t, err, `score of "u1"`)
}

// A window is incomplete if it starts before a partition's origin.
func TestAWindowNamesThePartitionsWhoseEventsCameLater(t *testing.T) {
	f := someone(t)
	w := f.window(1)
	for field, origin := range map[string]ledger.Origin{
		"events/10": {Offset: 5, Time: w.Start + 1}, "events/2": {Offset: 5, Time: w.End},
		"events/3": {Offset: 5, Time: w.Start}, "events/0": {},
	} {
		require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Origin(), field, origin.String()).Err())
	}
	b, err := f.store.Top(t.Context(), "global", w, 0, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"events/10", "events/2"}, b.Incomplete)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Origin(), "events/3", "soon").Err())
	_, err = f.store.Top(t.Context(), "global", w, 0, 10)
	require.ErrorContains(t, err, `events/3: origin "soon"`)
}

func TestAReaderNeedsNotKnowTheCluster(t *testing.T) {
	f := someone(t)
	reader := f.storeOf(t, func(c *Config) { c.Cluster = "" })
	for range 2 {
		b, err := reader.Rank(t.Context(), "global", f.window(0), "u1")
		require.NoError(t, err)
		require.Equal(t, int64(10), b.Standings[0].Points)
	}
	require.Equal(t, f.store.Schema(), *reader.readAs.Load(), "from the second read on it is one round trip")

	// A reader that knows the cluster requires it, and a reader with another layout fails too.
	other := f.storeOf(t, func(c *Config) { c.Cluster = "c2" })
	_, err := other.Rank(t.Context(), "global", f.window(0), "u1")
	require.ErrorContains(t, err, "the Kafka cluster at kafka.brokers is c1 in Redis, c2 here")
	f.use(t, codec.Wide, 1000)
	_, err = f.store.Top(t.Context(), "global", f.window(0), 0, 1)
	require.ErrorContains(t, err, "periods.weekly.layout is readable in Redis, wide here")
}
