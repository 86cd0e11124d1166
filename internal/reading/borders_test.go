package reading

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/testenv"
)

// A consumer with other time zone data opened yesterday's window, which ends an hour from now. It is the current
// day, and the reader shows the bounds in its listing.
func TestTheCurrentWindowIsTheOneThatConsumersCountIn(t *testing.T) {
	f := newFixture(t, testenv.Prefix(t), 2, codec.Readable)
	halfPastMidnight := 1800 - int(time.Now().Unix()%(24*3600))
	zone, err := periods.CalendarIn(time.FixedZone("Test/Zone", halfPastMidnight), "monday")
	require.NoError(t, err)
	rule := periods.BuiltIn(periods.Daily, zone)
	layout, err := codec.New(codec.Readable, periods.Daily.Length(), maxPoints)
	require.NoError(t, err)
	f.boards = boards.New(ranking.Config{
		Client: f.client, Prefix: testenv.Prefix(t), Shards: 2, Cluster: "c1", Timeout: 20 * time.Second, Calendar: zone,
		Periods: map[periods.Period]ranking.Period{periods.Daily: {Layout: layout, Retention: 60 * 24 * time.Hour}},
	})
	for _, s := range f.boards.Shards() {
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(10), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
	}
	f.config.Boards, f.config.Periods = f.boards, []Period{{Rule: rule, Zone: "Test/Zone"}}
	r := New(f.config)

	now := time.Now().UnixMilli()
	today, _, err := rule.At(now)
	require.NoError(t, err)
	yesterday, _ := rule.Previous(today)
	end := now/1000*1000 + 3_600_000
	border, _, _ := rule.Borders(today.Name)
	_, err = f.boards.Shards()[0].Settle(t.Context(), []ledger.Border{{Name: border.String(), At: end, Keep: end + 1}}, false)
	require.NoError(t, err)
	tuples, ok := f.boards.Layout("global", periods.Daily)
	require.True(t, ok)
	reached := yesterday.Start + 7_200_000
	score, err := tuples.Encode(codec.Tuple{7}, tuples.Ticks(yesterday.Start, end, reached))
	require.NoError(t, err)
	keys, name := f.boards.Shards()[1].Keys(), "global:daily:"+yesterday.Name // the other shard has no members
	require.NoError(t, f.client.ZAdd(t.Context(), keys.Listed(name), redis.Z{Score: score, Member: "u1"}).Err())
	require.NoError(t, f.client.HSet(t.Context(), keys.Windows(), name, entry(yesterday.Start, end, end+60_000)).Err())

	target, err := r.Target(t.Context(), "global", "daily", Current)
	require.NoError(t, err)
	require.Equal(t, yesterday.Name, target.Window.Name)
	for _, named := range []Target{target, {Board: "global", Period: f.config.Periods[0], Window: yesterday, Named: yesterday.Name}} {
		v, err := r.Rows(t.Context(), named, Page{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, []int64{yesterday.Start, end}, []int64{v.Window.Start, v.Window.End})
		require.Len(t, v.Standings, 1)
		require.Equal(t, reached/layout.Tick, v.Standings[0].ReachedAt.UnixMilli()/layout.Tick)
	}
	require.NoError(t, f.client.HSet(t.Context(), keys.Windows(), name, entry(5, 6, end+60_000)).Err())
	_, err = r.Rows(t.Context(), target, Page{Limit: 10})
	require.ErrorContains(t, err, "no change of time zone rules")

	// A read that waits for another read's call ends with its context.
	r.borders.turn <- struct{}{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, rule, r.borders.bind(ended, &rule, f.boards))
}
