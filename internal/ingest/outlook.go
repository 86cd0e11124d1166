package ingest

// What the consumer would ask Kafka and decide, for others who only look:
// `consumer status` and `consumer check`. Nothing here writes anything.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
)

// Log is what Kafka holds of a partition, as read_committed sees it.
type Log struct {
	Start int64 // the first offset
	End   int64 // the offset after the last one, or of the first open transaction
}

// Logs asks the leaders what a topic's partitions hold, all from 0 to partitions.
func Logs(ctx context.Context, client *kafka.Client, topic string, partitions int) ([]Log, error) {
	b := &broker{client: client, timeout: client.Timeout}
	all, err := b.bounds(ctx, topic, upTo(partitions)...)
	if err != nil {
		return nil, err
	}
	logs := make([]Log, partitions)
	for p := range logs {
		logs[p] = Log{all[p].start, all[p].end}
	}
	return logs, nil
}

const (
	settleTries = 10
	settlePause = 200 * time.Millisecond
)

// Committed asks for a group's offsets; a partition without one isn't in the
// answer. It asks again for two seconds where the group has no coordinator yet: on
// a cluster that nobody has used a group of, the question itself makes one.
func Committed(ctx context.Context, client *kafka.Client, group, topic string, partitions int) (map[int]Commit, error) {
	b := &broker{client: client, group: group, timeout: client.Timeout}
	for try := 0; ; try++ {
		all, err := b.committed(ctx, topic, upTo(partitions)...)
		settling := errors.Is(err, kafka.NotCoordinatorForGroup) || errors.Is(err, kafka.GroupCoordinatorNotAvailable) ||
			errors.Is(err, kafka.GroupLoadInProgress)
		if !settling || try == settleTries || sleep(ctx, settlePause) != nil {
			return all, err
		}
	}
}

// Settings reads a topic's configuration.
func Settings(ctx context.Context, client *kafka.Client, topic string) (TopicSettings, error) {
	b := &broker{client: client, timeout: client.Timeout}
	return b.settings(ctx, topic)
}

// Why a partition would start where it does: a line of the start table.
type Why string

// The lines of the start table.
const (
	FromLedger Why = "ledger"      // the ledger has a position
	OverGap    Why = "gap"         // it has one before the log's start, and on_gap says to go on
	Added      Why = "added"       // the partition was added to a topic under way
	First      Why = "first_start" // nobody knows the topic
	Lost       Why = "redis_lost"  // the group has read the topic, and Redis has nothing of it
	Halts      Why = "halt"        // it can't be said where to go on
)

// Outlook is where a partition would start now.
type Outlook struct {
	Why Why
	At  int64 // the offset, unless it halts
	// Partial is the time, in Unix ms, before which windows that begin are
	// incomplete; 0 for none. What the ledger's origin already says isn't in it.
	Partial int64
	Halt    *Halt // with Halts
}

// Outlook goes through the start table for every partition of a topic, as workers
// would if they started now, and writes nothing. Its error is one of asking.
func (c *Consumer) Outlook(ctx context.Context, topic string, state ledger.State, logs []Log, committed map[int]Commit) ([]Outlook, error) {
	all := make([]Outlook, len(logs))
	if err := c.Standings.CheckSchema(state.Schema); err != nil {
		for p := range all {
			all[p] = Outlook{Why: Halts, Halt: otherSchema(err)}
		}
		return all, nil
	}
	var set []ledger.Beginning // of the whole topic, once a partition asks for it
	var stopped *Halt
	for p, log := range logs {
		f := factsOf(state, topic, p)
		f.committed = len(committed) > 0
		f.log = bounds{log.Start, log.End}
		d, err := decide(f, c.OnGap)
		if halt, ok := errors.AsType[*Halt](err); ok {
			all[p] = Outlook{Why: Halts, Halt: halt}
			continue
		}
		known := committed[p].trail()
		w := &worker{trail: known.within(log.End), Config: &c.Config, shared: &c.shared, topic: topic, partition: p, field: ledger.Field(topic, p), kafka: c.kafka, log: c.Log}
		switch d.step {
		case goOn:
			all[p] = Outlook{Why: FromLedger, At: d.at.From}
		case confirm:
			all[p] = Outlook{Why: Halts, Halt: truncated(w.field, d.at, f.log)}
		case skip, join:
			if all[p], err = w.outlook(ctx, d, f, state.Clock); err != nil {
				return nil, err
			}
		default:
			if set == nil && stopped == nil {
				set, _, err = w.resolveAll(ctx, d.step, len(logs), committed, state.Clock)
				if halt, ok := errors.AsType[*Halt](err); ok {
					stopped = halt
				} else if err != nil {
					return nil, fmt.Errorf("find where %s begins: %w", topic, err)
				}
			}
			if all[p] = (Outlook{Why: Halts, Halt: stopped}); stopped == nil {
				all[p] = Outlook{Why: First, At: set[p].At.From, Partial: set[p].Origin.Time}
				if d.step == recoverAll {
					all[p].Why = Lost
				}
			}
		}
	}
	return all, nil
}

// outlook of a partition that goes on with what is left of the log, or from the
// start of one that was added.
func (w *worker) outlook(ctx context.Context, d decision, f facts, clock clock) (Outlook, error) {
	o := Outlook{Why: OverGap, At: d.at.From}
	if d.step == join {
		o = Outlook{Why: Added, At: f.log.start}
	}
	origin, err := w.originOf(ctx, f.log, clock)
	o.Partial = origin.Time
	return o, err
}
