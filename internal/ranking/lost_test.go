package ranking

// Tests reads of boards that Redis has lost, entirely or in part.

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestABoardWhoseKeyIsGoneIsLostAndNotEmpty(t *testing.T) {
	reads := map[string]func(f *fixture) (Board, error){
		"top":  func(f *fixture) (Board, error) { return f.store.Top(t.Context(), "global", f.window(0), 0, 10) },
		"rank": func(f *fixture) (Board, error) { return f.store.Rank(t.Context(), "global", f.window(0), "u1") },
	}
	for name, c := range map[string]struct {
		lose   func(f *fixture)
		lost   string
		listed bool
		shown  bool
	}{
		"nothing is lost":          {func(*fixture) {}, "", true, true},
		"another board's key":      {func(f *fixture) { f.del(t, f.key(1)) }, "", true, true},
		"the key is gone":          {func(f *fixture) { f.del(t, f.key(0)) }, LostBoard, true, false},
		"the listing is gone":      {func(f *fixture) { f.del(t, f.store.keys.Windows()) }, Unlisted, false, false},
		"both are":                 {func(f *fixture) { f.del(t, f.store.keys.Windows()); f.del(t, f.key(0)) }, "", false, false},
		"the ledger is gone":       {func(f *fixture) { f.del(t, f.store.keys.Ledger()) }, LostLedger, true, true},
		"the ledger, and the key":  {func(f *fixture) { f.del(t, f.store.keys.Ledger()); f.del(t, f.key(0)) }, LostBoard, true, false},
		"the ledger, and listings": {func(f *fixture) { f.del(t, f.store.keys.Ledger()); f.del(t, f.store.keys.Windows()) }, Unlisted, false, false},
	} {
		for how, read := range reads {
			t.Run(name+", "+how, func(t *testing.T) {
				f := someone(t)
				c.lose(f)
				b, err := read(f)
				require.NoError(t, err)
				require.Equal(t, c.lost, b.Lost)
				require.Equal(t, c.listed, b.Listed)
				require.Equal(t, c.shown, b.Members == 1)
				require.Equal(t, c.shown, len(b.Standings) == 1 && b.Standings[0].Rank == 1)
			})
		}
	}
}

// The state is read in the same call as the rows; a second call would be of another moment.
func TestAReadHasWhatStandsBesideTheScores(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.hasLine(t, "events/3", "a line")
	b, err := f.store.Top(t.Context(), "global", f.window(0), 0, 10)
	var none *SchemaError
	require.ErrorAs(t, err, &none)
	require.Empty(t, none.Found)
	require.Equal(t, map[string]string{"events/3": "a line"}, b.Beside.Workers, "also where Redis has lost the rest")

	require.Empty(t, b.Lost)

	_, err = f.store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(0), Refill: 480}})
	require.NoError(t, err)
	for range 2 {
		b, err = f.store.Rank(t.Context(), "global", f.window(0), "u1")
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"events/3": 480}, b.Beside.Refills)
		require.Equal(t, map[string]string{"events/3": "a line"}, b.Beside.Workers)
	}
	require.Equal(t, "0", b.Beside.Ledger["events/3"])
	require.False(t, b.Listed)
}

// A Redis that was lost in part isn't reported as empty.
func TestBoardsWithoutASchemaAreLost(t *testing.T) {
	f := someone(t)
	f.del(t, f.store.keys.Schema())
	lost := func(want string) {
		t.Helper()
		b, err := f.store.Top(t.Context(), "global", f.window(0), 0, 10)
		var none *SchemaError
		require.ErrorAs(t, err, &none)
		require.Equal(t, want, b.Lost)
	}
	lost(LostSchema)
	f.del(t, f.store.keys.Ledger())
	lost(LostLedger)
	f.del(t, f.store.keys.Windows())
	lost("")
}

func TestEveryListedBoardWhoseKeyIsGoneIsFound(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := someone(t)
	found := func(want ...string) {
		t.Helper()
		lost, err := f.store.Lost(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, lost)
	}
	found()
	now := time.Now().UnixMilli()
	for i := range 1100 { // more than a page
		name := fmt.Sprintf("b%04d:weekly:2100-W10", i)
		require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, entry(now, now, now+day)).Err())
		if i != 7 && i != 1000 {
			require.NoError(t, f.client.ZAdd(t.Context(), f.store.keys.Listed(name), redis.Z{Score: 1, Member: "u"}).Err())
		}
	}
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), "over:weekly:2020-W10", entry(0, 1, now-1), "odd:weekly:2020-W10", "nonsense").Err())
	f.del(t, f.key(1))
	found("b0007:weekly:2100-W10", "b1000:weekly:2100-W10", f.piece.Windows[1].Listing())
}
