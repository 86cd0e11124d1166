package metrics

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// aConsumer returns three partitions in different states.
func aConsumer() ingest.Snapshot {
	partition := func(n int, state, reason string, lag workers.Lag) ingest.PartitionSnapshot {
		return ingest.PartitionSnapshot{Topic: "points", Partition: n, Line: workers.Line{State: state, Reason: reason}, Lag: lag}
	}
	return ingest.Snapshot{
		Membership: group.Membership{Joined: true, Generation: 7, Joins: 3},
		Partitions: []ingest.PartitionSnapshot{
			partition(0, workers.StateRunning, "", workers.Lag{Known: true}),
			partition(1, workers.StateWaiting, health.WaitsMemory, workers.Lag{Known: true, Records: 12, Since: time.Now().Add(-90 * time.Second)}),
			partition(2, workers.StateHalted, health.HaltGap, workers.Lag{}),
		},
		Memory: ingest.Memory{Limit: 300, Used: 100, High: 200},
	}
}

func gather(t *testing.T, stats *counts.Stats, now func() ingest.Snapshot) map[string]*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(New(stats, now)))
	families, err := r.Gather()
	require.NoError(t, err)
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// values returns a family's values, by the values of their labels in the order of the labels' names.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		key := ""
		for _, l := range m.GetLabel() {
			key += l.GetValue() + " "
		}
		all[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return all
}

func TestNamesUnitsAndHelpAreAsPrometheusAsks(t *testing.T) {
	problems, err := testutil.CollectAndLint(New(new(counts.Stats), aConsumer))
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestEverythingThatIsDescribedIsShown(t *testing.T) {
	stats := new(counts.Stats)
	stats.Shard(0)
	found := gather(t, stats, aConsumer)
	require.Len(t, found, len(all), "%v", slices.Sorted(maps.Keys(found)))
}

func TestStandsByThePartitionsOfThisProcess(t *testing.T) {
	began := time.Now()
	found := gather(t, new(counts.Stats), aConsumer)
	took := time.Since(began)
	require.Equal(t, map[string]float64{"": 3}, values(found["standings_assigned_partitions"]))
	require.Equal(t, map[string]float64{"": 1}, values(found["standings_group_member"]))
	require.Equal(t, map[string]float64{"": 7}, values(found["standings_group_generation"]))
	require.Equal(t, map[string]float64{"0 points ": 0, "1 points ": 12}, values(found["standings_lag_records"]), "of a partition that nobody could look at nothing is said")
	seconds := values(found["standings_lag_seconds"])
	require.Zero(t, seconds["0 points "])
	require.GreaterOrEqual(t, seconds["1 points "], 90.0)
	require.LessOrEqual(t, seconds["1 points "], (90*time.Second+took).Seconds()+0.001)
	require.Equal(t, map[string]float64{
		"0 running points ": 1, "0 waiting points ": 0, "0 halted points ": 0,
		"1 running points ": 0, "1 waiting points ": 1, "1 halted points ": 0,
		"2 running points ": 0, "2 waiting points ": 0, "2 halted points ": 1,
	}, values(found["standings_partition_state"]))
	halted := values(found["standings_halted_partitions"])
	require.Len(t, halted, len(health.HaltReasons()))
	for reason, n := range halted {
		require.Equal(t, reason == health.HaltGap+" ", n == 1, "%s: %v", reason, n)
	}
	waiting := values(found["standings_waiting_partitions"])
	require.Len(t, waiting, len(health.WaitReasons()))
	for reason, n := range waiting {
		require.Equal(t, reason == health.WaitsMemory+" ", n == 1, "%s: %v", reason, n)
	}
}

func TestPartitionsThatAreReadAgainSinceRedisWasLostAreCounted(t *testing.T) {
	require.Equal(t, map[string]float64{"": 0}, values(gather(t, new(counts.Stats), aConsumer)["standings_refilling_partitions"]))
	refilling := aConsumer()
	refilling.Partitions[0].Refill, refilling.Partitions[2].Refill = 7, 1
	found := gather(t, new(counts.Stats), func() ingest.Snapshot { return refilling })
	require.Equal(t, map[string]float64{"": 2}, values(found["standings_refilling_partitions"]))
}

func TestAProcessThatLostItsPartitionsShowsNoneOfThem(t *testing.T) {
	found := gather(t, new(counts.Stats), func() ingest.Snapshot { return ingest.Snapshot{} })
	for _, name := range []string{"standings_lag_records", "standings_lag_seconds", "standings_partition_state"} {
		require.NotContains(t, found, name)
	}
	require.Equal(t, map[string]float64{"": 0}, values(found["standings_assigned_partitions"]))
}

func TestEveryCounterStandsAtZeroBeforeItsFirst(t *testing.T) {
	found := gather(t, new(counts.Stats), aConsumer)
	for name, n := range map[string]int{
		"standings_events_total": 7, "standings_events_dead_lettered_total": 7, "standings_ledger_moves_total": 6, "standings_retries_total": 2,
	} {
		require.Len(t, values(found[name]), n, name)
	}
}

// Shard 1 is unavailable for two partitions and full for another, and a rebuild holds shard 2.
func TestAShardThatIsWaitedForIsShownWithTheReasonAndTheLongestWait(t *testing.T) {
	stats := new(counts.Stats)
	for i, updates := range []int64{100, 200, 300} {
		of := stats.Shard(i)
		of.Updates.Add(updates)
		of.Pieces.Add(int64(i))
		of.ApplyTime.Add(int64(i) * int64(time.Second))
		of.Retries.Add(int64(i))
	}
	waits := func(shard int, reason string, since time.Duration) health.ShardWait {
		return health.ShardWait{Shard: shard, Reason: reason, Since: time.Now().Add(-since)}
	}
	c := aConsumer()
	c.Partitions[0].Shards = []health.ShardWait{waits(1, health.WaitsRedis, time.Second), waits(2, health.WaitsRebuild, time.Minute)}
	c.Partitions[1].Shards = []health.ShardWait{waits(1, health.WaitsRedis, time.Hour)}
	c.Partitions[2].Shards = []health.ShardWait{waits(1, health.WaitsRedisFull, time.Minute)}
	began := time.Now()
	found := gather(t, stats, func() ingest.Snapshot { return c })
	took := time.Since(began)
	require.Equal(t, map[string]float64{
		"redis 0 ": 0, "redis_full 0 ": 0, "rebuild 0 ": 0,
		"redis 1 ": 2, "redis_full 1 ": 1, "rebuild 1 ": 0,
		"redis 2 ": 0, "redis_full 2 ": 0, "rebuild 2 ": 1,
	}, values(found["standings_shard_waiting_partitions"]))
	seconds := values(found["standings_shard_waiting_seconds"])
	require.Zero(t, seconds["0 "])
	require.InDelta(t, time.Hour.Seconds(), seconds["1 "], 1+took.Seconds())
	require.InDelta(t, time.Minute.Seconds(), seconds["2 "], 1+took.Seconds())
	require.Equal(t, map[string]float64{"0 ": 100, "1 ": 200, "2 ": 300}, values(found["standings_shard_updates_total"]))
	require.Equal(t, map[string]float64{"0 ": 0, "1 ": 1, "2 ": 2}, values(found["standings_shard_retries_total"]))
	for i, m := range found["standings_shard_apply_seconds"].GetMetric() {
		require.Equal(t, uint64(i), m.GetSummary().GetSampleCount())
		require.InDelta(t, float64(i), m.GetSummary().GetSampleSum(), 1e-9)
	}
}
