// Package metrics shows Prometheus what a consumer counts.
//
// Nothing is counted here: ingest.Stats and the consumer hold the numbers, and a
// Collector reads them when it is asked. So there is one count of everything, the one
// that the last line of the log and the tests go by as well.
package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/event"
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

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("standings_"+name, help, labels, nil)
}

var (
	events = desc("events_total",
		"Events whose end is known, by what became of them: applied, dead_lettered, late (no window takes them), skipped (null values), "+
			"repeated (read again after a takeover, and already in). Their sum is standings_events_consumed_total.", "result")
	deadLettered = desc("dead_lettered_events_total", "Events that were dead-lettered, by reason.", "reason")
	deadLetters  = desc("dead_letters_written_total", "Records written to dead-letter topics. An event that is read again after a takeover may have several.")
	batches      = desc("batches_total", "Batches that were swept to their end.")
	pieces       = desc("pieces_total", "Pieces that were applied, each in one call to Redis.")
	updates      = desc("updates_total", "Member-windows written to Redis. Applied events by this is how many events an update carries.")
	moves        = desc("ledger_moves_total", "Times that the ledger was found elsewhere than it should stand.")
	retries      = desc("retries_total", "Calls that were tried again, by what they went to.", "target")
	fetched      = desc("fetched_bytes_total", "Bytes of record batches that brokers sent, as compressed as they came.")

	member     = desc("group_member", "1 while this process is in a generation of its group, else 0.")
	generation = desc("group_generation", "The last generation of the group that this process was in.")
	joins      = desc("group_joins_total", "Generations of the group that this process was in: each rebalance begins one.")
	assigned   = desc("assigned_partitions", "Partitions that this process has.")
	state      = desc("partition_state", "1 for the state that a partition of this process is in: running, waiting or halted.", "topic", "partition", "state")
	halted     = desc("halted_partitions", "Partitions of this process that are halted, by reason.", "reason")

	all = []*prometheus.Desc{
		events, deadLettered, deadLetters, batches, pieces, updates, moves, retries, fetched,
		member, generation, joins, assigned, state, halted,
	}
)

// Describe names all there may be.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// Collect reads the counts.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		send(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		send(d, prometheus.GaugeValue, v, labels...)
	}
	s := c.stats
	count(events, s.Applied.Load(), "applied")
	count(events, s.DeadLettered(), "dead_lettered")
	count(events, s.Late.Load(), "late")
	count(events, s.Skipped.Load(), "skipped")
	count(events, s.Repeated.Load(), "repeated")
	for _, r := range event.Reasons() {
		count(deadLettered, s.Dead(r), string(r))
	}
	count(deadLetters, s.DeadLetters.Load())
	count(batches, s.Batches.Load())
	count(pieces, s.Pieces.Load())
	count(updates, s.Updates.Load())
	count(moves, s.Moves.Load())
	count(retries, s.Retries.Load(), "redis")
	count(fetched, s.FetchBytes.Load())

	now := c.now()
	gauge(member, truth(now.Joined))
	gauge(generation, float64(now.Generation))
	count(joins, now.Joins)
	gauge(assigned, float64(len(now.Partitions)))
	reasons := map[string]int{}
	for _, p := range now.Partitions {
		for _, of := range []string{ingest.StateRunning, ingest.StateWaiting, ingest.StateHalted} {
			gauge(state, truth(of == p.Line.State), p.Topic, strconv.Itoa(p.Partition), of)
		}
		if p.Line.State == ingest.StateHalted {
			reasons[p.Line.Reason]++
		}
	}
	for _, r := range ingest.HaltReasons() {
		gauge(halted, float64(reasons[r]), r)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
