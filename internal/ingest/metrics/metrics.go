// Package metrics exports a consumer's counters to Prometheus.
//
// It counts nothing itself: counts.Stats and the consumer hold the numbers, and a Collector reads them at each
// scrape. There is therefore one count of everything, which the last log line and the tests use as well. A
// partition that has moved to another process is no longer exported.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// Collector exports the metrics of one consumer.
type Collector struct {
	stats *counts.Stats
	now   func() ingest.Snapshot
}

// New returns a Collector. now returns the consumer's current state; before the consumer starts, that is the
// zero Snapshot.
func New(stats *counts.Stats, now func() ingest.Snapshot) *Collector {
	return &Collector{stats: stats, now: now}
}

// Events, by result.
var (
	consumed = desc("events_consumed_total",
		"Events that were read and have a result. Equals the sum of standings_events_total at any time.")
	events = desc("events_total",
		"Events by result: applied; dead_lettered; late (after every window); early (before every window); skipped (null value); repeated (read again, already counted); duplicate (event.duplicates). An event of a call whose outcome stayed unknown, for example in a killed process, is repeated for the next owner and applied for none.", "result")
	deadLettered = desc("events_dead_lettered_total", "Dead-lettered events, by reason.", "reason")
	deadLetters  = desc("dead_letters_written_total", "Records written to dead-letter topics. An event that is read again after a takeover can have several.")
)

// The amount of work.
var (
	records  = desc("records_read_total", "Records read and folded, including those read again.")
	fetched  = desc("fetched_bytes_total", "Bytes of record batches received, compressed.")
	batches  = desc("batch_events", "Events per completely applied batch.")
	pieces   = desc("piece_updates", "Standings written per applied piece, each one call to Redis.")
	updates  = desc("updates_total", "Standings written to Redis. Applied events per update show how well folding works.")
	apply    = desc("apply_seconds", "Duration of calls that apply a piece, without waiting in this process.")
	standing = desc("record_to_standing_seconds", "Time from the newest record of a batch, by its record time, until all of the batch counts.")
)

// The work by shard; there is one shard unless redis.shards is set. These have no label for the partition, so
// that there are at most a few hundred series.
var (
	shardUpdates = desc("shard_updates_total", "Standings written by shard. Their sum is standings_updates_total.", "shard")
	shardApply   = desc("shard_apply_seconds", "Duration of calls that apply a piece, by shard: sum and count.", "shard")
	shardRetries = desc("shard_retries_total", "Retried calls by shard. Their sum is standings_retries_total of redis.", "shard")
	shardWaiting = desc("shard_waiting_partitions", "Partitions of this process that wait for a shard, by reason: redis (unavailable), redis_full, rebuild. A partition that waits for several shards counts for each.", "shard", "reason")
	shardWaits   = desc("shard_waiting_seconds", "Longest current wait of a partition of this process for a shard; 0 if none.", "shard")
)

// Exceptions, waits and halts.
var (
	moves     = desc("ledger_moves_total", "Times that the ledger had an unexpected position, by cause: advanced (another owner, or a lost reply), rolled_back (failover or restored backup), rebuilt (by a rebuild that paused no consumer), emptied, torn, unreadable.", "cause")
	others    = desc("readings_by_other_rules_total", "Batches read again with another process's rules, because the configuration changed while they were applied.")
	broken    = desc("disordered_records_total", "Records whose time precedes that of an earlier record of their partition by more than the setting disorder: windows may be wrongly shown as complete. 0 if disorder is not set.")
	retries   = desc("retries_total", "Retried calls, by target: kafka or redis.", "target")
	throttled = desc("kafka_throttle_seconds_total", "Time that broker quotas (consumer_byte_rate, request_percentage) delayed fetches, summed over partitions.")
	halted    = desc("halted_partitions", "Halted partitions of this process, by reason. /readyz has the remedy.", "reason")
	waiting   = desc("waiting_partitions", "Waiting partitions of this process, by reason: memory (fold_memory), dead_letters (cannot be written), redis_full, throttled (Kafka quota), rebuild, reshard, kafka and redis (unavailable).", "reason")
	refilling = desc("refilling_partitions", "Partitions of this process that are read again after Redis was lost or the boards were rebuilt: until then boards lack points and members. /readyz has the remaining records.")
	state     = desc("partition_state", "1 for the current state of a partition of this process, 0 for the others: running, waiting, halted.", "topic", "partition", "state")
)

// Lag, group and memory.
var (
	lagRecords = desc("lag_records", "Offsets between a partition's ledger and the end of its log, including those behind an open transaction and those of an unfinished batch.", "topic", "partition")
	lagSeconds = desc("lag_seconds", "Age of the oldest uncounted record of a partition by its record time; 0 if caught up. A lower bound until that record is read.", "topic", "partition")
	openFor    = desc("open_transaction_seconds", "How long an open producer transaction has blocked a partition's records; 0 if none.", "topic", "partition")
	member     = desc("group_member", "1 while this process is a member of its group, else 0.")
	generation = desc("group_generation", "Last group generation of this process.")
	joins      = desc("group_joins_total", "Group generations that this process joined; each rebalance starts one.")
	assigned   = desc("assigned_partitions", "Partitions assigned to this process.")
	memLimit   = desc("fold_memory_limit_bytes", "Memory for fetched and folded events: fold_memory less reserves.")
	memUsed    = desc("fold_memory_used_bytes", "Memory used or reserved by fetched and folded events.")
	memHigh    = desc("fold_memory_used_max_bytes", "Maximum of standings_fold_memory_used_bytes since the start.")
	memWaiting = desc("fold_memory_waiting_partitions", "Partitions queued for fold_memory, which is normal while many catch up. Long waits are in standings_waiting_partitions.")
)

var all = []*prometheus.Desc{
	consumed, events, deadLettered, deadLetters,
	records, fetched, batches, pieces, updates, apply, standing,
	moves, others, broken, retries, throttled, halted, waiting, refilling, state,
	shardUpdates, shardApply, shardRetries, shardWaiting, shardWaits,
	lagRecords, lagSeconds, openFor, member, generation, joins, assigned, memLimit, memUsed, memHigh, memWaiting,
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("standings_"+name, help, labels, nil)
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// Collect sends all metrics.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	out := sender(to)
	out.events(c.stats.Count())
	out.work(c.stats)
	now := c.now()
	out.stands(now, time.Now())
	out.shards(c.stats.Shards(), now, time.Now())
}

type sender chan<- prometheus.Metric

func (to sender) count(d *prometheus.Desc, n int64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (to sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// histogram sends a distribution. one is the value of the distribution that equals one unit of the metric.
func (to sender) histogram(d *prometheus.Desc, h counts.Distribution, one float64) {
	buckets := map[float64]uint64{}
	for i, bound := range h.Bounds {
		buckets[float64(bound)/one] = uint64(h.Counts[i])
	}
	to <- prometheus.MustNewConstHistogram(d, uint64(h.Count), float64(h.Sum)/one, buckets)
}

func (to sender) events(n counts.Count) {
	dead := int64(0)
	for _, r := range event.Reasons() {
		to.count(deadLettered, n.Dead[r], string(r))
		dead += n.Dead[r]
	}
	to.count(consumed, n.Consumed)
	to.count(events, n.Applied, "applied")
	to.count(events, dead, "dead_lettered")
	to.count(events, n.Late, "late")
	to.count(events, n.Early, "early")
	to.count(events, n.Skipped, "skipped")
	to.count(events, n.Repeated, "repeated")
	to.count(events, n.Duplicates, "duplicate")
}

func (to sender) work(s *counts.Stats) {
	to.count(deadLetters, s.DeadLetters.Load())
	to.count(records, s.Records.Load())
	to.count(fetched, s.FetchBytes.Load())
	to.count(updates, s.Updates.Load())
	to.histogram(batches, s.BatchEvents(), 1)
	to.histogram(pieces, s.PieceUpdates(), 1)
	to.histogram(apply, s.ApplyTime(), float64(time.Second))
	to.histogram(standing, s.StandingTime(), float64(time.Second))
	for _, cause := range counts.MoveCauses() {
		to.count(moves, s.Moves(cause), cause)
	}
	to.count(others, s.OtherRules.Load())
	to.count(broken, s.Disordered.Load())
	to.count(retries, s.Retries.Load(), "redis")
	to.count(retries, s.KafkaTries.Load(), "kafka")
	to <- prometheus.MustNewConstMetric(throttled, prometheus.CounterValue, time.Duration(s.Throttled.Load()).Seconds())
}

func (to sender) stands(s ingest.Snapshot, now time.Time) {
	to.gauge(member, truth(s.Joined))
	to.gauge(generation, float64(s.Generation))
	to.count(joins, s.Joins)
	to.gauge(assigned, float64(len(s.Partitions)))
	to.gauge(memLimit, float64(s.Memory.Limit))
	to.gauge(memUsed, float64(s.Memory.Used))
	to.gauge(memHigh, float64(s.Memory.High))
	to.gauge(memWaiting, float64(s.Memory.Waiting))
	type why struct{ state, reason string }
	reasons, refills := map[why]int{}, 0
	for i := range s.Partitions {
		p := &s.Partitions[i]
		to.partition(p, now)
		reasons[why{p.Line.State, p.Line.Reason}]++
		if p.Refill > 0 {
			refills++
		}
	}
	to.gauge(refilling, float64(refills))
	for _, r := range health.HaltReasons() {
		to.gauge(halted, float64(reasons[why{workers.StateHalted, r}]), r)
	}
	for _, r := range health.WaitReasons() {
		to.gauge(waiting, float64(reasons[why{workers.StateWaiting, r}]), r)
	}
}

// shards sends the metrics of each shard.
func (to sender) shards(all []*counts.Shard, s ingest.Snapshot, now time.Time) {
	type why struct {
		shard  int
		reason string
	}
	waits, longest := map[why]int{}, make([]time.Duration, len(all))
	for i := range s.Partitions {
		for _, w := range s.Partitions[i].Shards {
			waits[why{w.Shard, w.Reason}]++
			if w.Shard < len(all) {
				longest[w.Shard] = max(longest[w.Shard], now.Sub(w.Since))
			}
		}
	}
	for i, shard := range all {
		number := strconv.Itoa(i)
		to.count(shardUpdates, shard.Updates.Load(), number)
		to <- prometheus.MustNewConstSummary(shardApply, uint64(shard.Pieces.Load()), time.Duration(shard.ApplyTime.Load()).Seconds(), nil, number)
		to.count(shardRetries, shard.Retries.Load(), number)
		to.gauge(shardWaits, longest[i].Seconds(), number)
		for _, reason := range health.ShardReasons() {
			to.gauge(shardWaiting, float64(waits[why{i, reason}]), number, reason)
		}
	}
}

func (to sender) partition(p *ingest.PartitionSnapshot, now time.Time) {
	number := strconv.Itoa(p.Partition)
	for _, of := range []string{workers.StateRunning, workers.StateWaiting, workers.StateHalted} {
		to.gauge(state, truth(of == p.Line.State), p.Topic, number, of)
	}
	if !p.Lag.Known {
		return
	}
	to.gauge(lagRecords, float64(p.Lag.Records), p.Topic, number)
	age := time.Duration(0)
	if !p.Lag.Since.IsZero() {
		age = max(0, now.Sub(p.Lag.Since))
	}
	to.gauge(lagSeconds, age.Seconds(), p.Topic, number)
	open := time.Duration(0)
	if t := p.Lag.Open; t != nil {
		open = max(0, now.Sub(t.Since))
	}
	to.gauge(openFor, open.Seconds(), p.Topic, number)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
