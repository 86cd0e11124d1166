package health

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

func TestTheErrorOfSeveralShardsIsThatOfTheFirstAndNamesTheOthers(t *testing.T) {
	require.NoError(t, WaitsForShards(make([]error, 12)))
	errs := make([]error, 12)
	errs[3] = StandingsError(3, errGone)
	require.EqualError(t, WaitsForShards(errs), "connection reset")
	for _, c := range []struct {
		also int
		says string
	}{{5, "shard 5"}, {6, "shards 5, 6"}, {7, "shards 5 to 7"}, {9, "shards 5 to 7, 9"}, {10, "shards 5 to 7, 9, 10"}, {11, "shards 5 to 7, 9 to 11"}} {
		errs[c.also] = StandingsError(c.also, errors.New("another"))
		err := WaitsForShards(errs)
		require.EqualError(t, err, "connection reset (waited for as well: "+c.says+")")
		require.ErrorIs(t, err, errGone)
		require.True(t, IsStandings(err))
		require.Equal(t, 3, ShardOf(err))
		reason, _ := ClassifyWait(err)
		require.Equal(t, WaitsRedis, reason)
	}
}

func TestShardsAreWaitedForSinceTheyWereWithoutABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := quietStatus()
		waits := func() map[int]string {
			all := map[int]string{}
			for _, w := range s.Shards() {
				all[w.Shard] = w.Reason + " " + time.Since(w.Since).String()
			}
			return all
		}
		require.Empty(t, waits())
		s.Reading(errors.New("a broker is away"))
		require.Empty(t, waits())

		full := StandingsError(2, &ledger.FullError{Err: errors.New("OOM")})
		s.Writing(WaitsForShards([]error{nil, StandingsError(1, errGone), full, &Waiting{WaitsRebuild, errors.New("held"), "none"}}))
		require.Equal(t, map[int]string{1: "redis 0s", 2: "redis_full 0s", 3: "rebuild 0s"}, waits())
		time.Sleep(time.Minute)
		s.Waiting(StandingsError(1, errGone)) // the flow has ended because of it
		s.Writing(WaitsForShards([]error{nil, nil, full, nil}))
		require.Equal(t, map[int]string{1: "redis 1m0s", 2: "redis_full 1m0s"}, waits())
		s.Writing(nil)
		time.Sleep(time.Second)
		require.Equal(t, map[int]string{1: "redis 1m1s"}, waits())
		s.Waiting(nil)
		require.Empty(t, waits())
		s.Waiting(StandingsError(1, errGone))
		require.Equal(t, map[int]string{1: "redis 0s"}, waits(), "it is another wait")
		for _, w := range s.Shards() {
			require.Contains(t, ShardReasons(), w.Reason)
		}
	})
}
