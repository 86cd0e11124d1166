// Package metrics shows Prometheus what a consumer counts.
//
// Nothing is counted here: ingest.Stats and the consumer hold the numbers, and a
// Collector reads them at each scrape. So there is one count of everything, the one
// that the last line of the log and the tests go by as well, and what a process has no
// more, a partition that went to another, isn't shown by it any more.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// Collector collects from one consumer.
type Collector struct {
	stats *ingest.Stats
	now   func() ingest.Snapshot
}

// New makes a Collector. now is the consumer as it stands; the zero Snapshot is that
// of one that hasn't begun.
func New(stats *ingest.Stats, now func() ingest.Snapshot) *Collector {
	return &Collector{stats: stats, now: now}
}

// Events, by what became of them.
var (
	consumed = desc("events_consumed_total",
		"Events that were read and whose end is known. It is counted where they are read: standings_events_total adds up to it at any time, over all results.")
	events = desc("events_total",
		"Events whose end is known, by what became of them: applied; dead_lettered; late (no window takes them any more); early (no window takes them, as they lie before the first of every period); skipped (null values); "+
			"repeated (read again after a takeover or a restart, and already in); duplicate (the ids of an event just before, with event.duplicates). Events of a call whose answer was never learned, "+
			"of a process that was killed for instance, are in no applied, and in the next owner's repeated.", "result")
	deadLettered = desc("events_dead_lettered_total", "Events that were dead-lettered, by reason.", "reason")
	deadLetters  = desc("dead_letters_written_total", "Records written to dead-letter topics. An event that is read again after a takeover may have several.")
)

// The work.
var (
	records  = desc("records_read_total", "Records that were read and folded, those of batches that were dropped and read again too.")
	fetched  = desc("fetched_bytes_total", "Bytes of record batches that brokers sent, as compressed as they came.")
	batches  = desc("batch_events", "Events of the batches that were swept to their end: how far folding goes.")
	pieces   = desc("piece_updates", "Member-windows written by the pieces that were applied, each in one call to Redis.")
	updates  = desc("updates_total", "Member-windows written to Redis. By this, applied events are the events an update carries: the more, the cheaper.")
	apply    = desc("apply_seconds", "How long the calls took that applied a piece, without waiting for their turn in this process.")
	standing = desc("record_to_standing_seconds", "From the newest record of a batch until all of the batch counts, by the record's time and this machine's clock. Of a replay it is how old the records are.")
)

// The work by shard, of which there is one unless redis.shards says otherwise. By shard alone, and
// not by partition too, so that they are no more than a few hundred.
var (
	shardUpdates = desc("shard_updates_total", "Member-windows written to a shard. Over all shards they are standings_updates_total.", "shard")
	shardApply   = desc("shard_apply_seconds", "How long the calls took that applied a piece to a shard, as standings_apply_seconds: their sum, and how many pieces.", "shard")
	shardRetries = desc("shard_retries_total", "Calls to a shard that were tried again. Over all shards they are standings_retries_total of redis.", "shard")
	shardWaiting = desc("shard_waiting_partitions", "Partitions of this process that wait for a shard, by reason: redis (its server doesn't answer, or doesn't serve it), redis_full, rebuild (one holds it). A partition that waits for several shards is in each.", "shard", "reason")
	shardWaits   = desc("shard_waiting_seconds", "For how long a shard has been waited for, by the partition of this process that has waited longest, whatever the reason; 0 if none waits.", "shard")
)

// What went otherwise.
var (
	moves     = desc("ledger_moves_total", "Times that the ledger was found at another position than expected, by cause: advanced (another owner, or a call whose answer was lost), rolled_back (a failover, a restored backup), rebuilt (by a rebuild that paused no consumer), emptied, torn, unreadable.", "cause")
	others    = desc("readings_by_other_rules_total", "Readings by the rules of whoever began a sweep, since they aren't this process's: a configuration was changed while that was under way.")
	broken    = desc("disordered_records_total", "Records whose time is further before that of an earlier record of their partition than `disorder` allows: windows may be shown as complete that aren't. 0 if `disorder` isn't set.")
	retries   = desc("retries_total", "Calls that were tried again, by what they went to: kafka or redis.", "target")
	throttled = desc("kafka_throttle_seconds_total", "Time for which brokers throttled fetches by a quota (consumer_byte_rate, request_percentage), summed over partitions: with many of them it may grow by many seconds a second.")
	halted    = desc("halted_partitions", "Partitions of this process that are halted, by reason. /readyz reports what to do.", "reason")
	waiting   = desc("waiting_partitions", "Partitions of this process that wait, by reason: memory (for a turn at fold_memory), dead_letters (their topic can't be written), redis_full, throttled (a quota of Kafka's), rebuild (one holds the boards), reshard (one copies them), kafka and redis (that doesn't answer).", "reason")
	refilling = desc("refilling_partitions", "Partitions of this process that are read again since Redis was lost: until they are where they were, boards lack points and members. /readyz reports how many records are left.")
	state     = desc("partition_state", "1 for the state that a partition of this process is in, 0 for the others: running, waiting, halted.", "topic", "partition", "state")
)

// How it stands.
var (
	lagRecords = desc("lag_records", "Offsets between a partition's ledger and the end of its log as the broker last reported it, also those that an open transaction holds back. Those of a sweep under way count as behind until its end.", "topic", "partition")
	lagSeconds = desc("lag_seconds", "Age of the oldest record of a partition that doesn't count yet, by the record's time; 0 when caught up. Before that record was read, how long it has been waiting at least.", "topic", "partition")
	openFor    = desc("open_transaction_seconds", "How long a producer's transaction has been open that holds back the records of a partition; 0 if none is open.", "topic", "partition")
	member     = desc("group_member", "1 while this process is in a generation of its group, else 0.")
	generation = desc("group_generation", "The last generation of the group that this process was in.")
	joins      = desc("group_joins_total", "Generations of the group that this process was in: each rebalance begins one.")
	assigned   = desc("assigned_partitions", "Partitions that this process has.")
	memLimit   = desc("fold_memory_limit_bytes", "What fetched and folded events may take: fold_memory, less what is set aside.")
	memUsed    = desc("fold_memory_used_bytes", "What they take, or have reserved.")
	memHigh    = desc("fold_memory_used_max_bytes", "The most that they have taken since the start.")
	memWaiting = desc("fold_memory_waiting_partitions", "Partitions in the queue for a turn at fold_memory: ordinary while many catch up. One that lasts is in standings_waiting_partitions.")
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

// Describe names all there may be.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// Collect reads everything.
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

// histogram sends a distribution of which one in the metric's unit is so much.
func (to sender) histogram(d *prometheus.Desc, h ingest.Distribution, one float64) {
	buckets := map[float64]uint64{}
	for i, bound := range h.Bounds {
		buckets[float64(bound)/one] = uint64(h.Counts[i])
	}
	to <- prometheus.MustNewConstHistogram(d, uint64(h.Count), float64(h.Sum)/one, buckets)
}

func (to sender) events(n ingest.Count) {
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

func (to sender) work(s *ingest.Stats) {
	to.count(deadLetters, s.DeadLetters.Load())
	to.count(records, s.Records.Load())
	to.count(fetched, s.FetchBytes.Load())
	to.count(updates, s.Updates.Load())
	to.histogram(batches, s.BatchEvents(), 1)
	to.histogram(pieces, s.PieceUpdates(), 1)
	to.histogram(apply, s.ApplyTime(), float64(time.Second))
	to.histogram(standing, s.StandingTime(), float64(time.Second))
	for _, cause := range ingest.MoveCauses() {
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

// shards sends what is known of each shard.
func (to sender) shards(all []*ingest.ShardStats, s ingest.Snapshot, now time.Time) {
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
