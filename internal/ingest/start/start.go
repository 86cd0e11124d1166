// Package start decides where a partition is read from. It is pure. Its input are facts: the ledger, the
// group's commits, the log, and what is known of the times of deleted records. Its result is a decision, or a
// halt with a remedy. The worker that gathered the facts carries the decision out.
//
//	start.go     the start table: continue, skip a gap, start the topic, or halt
//	shards.go    the same for several shards: what a shard without the topic is
//	resolve.go   where all partitions of a topic start, if the ledger has none of them
//	plan.go      the same place again, if a first start is repeated
//	complete.go  what that proves: since when no record is missing
//	logend.go    when a log is taken to end before what was counted
package start

import (
	"errors"
	"fmt"
	"strings"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Facts are the input of the decision for one partition.
type Facts struct {
	Partition ledger.Partition
	Found     string // the ledger's text; empty if it has none
	Others    bool   // the ledger has partitions of the topic
	Ledger    int    // entries of the ledger
	Windows   int    // listed windows
	// SchemaGone is true if Redis has no schema. A ledger without a schema is inconsistent.
	SchemaGone bool
	Committed  bool // Kafka has offsets of this group for the topic
	// For a shard without the topic: Elsewhere is true if other shards have it, Unread if all of those are at
	// their origins.
	Elsewhere, Unread bool
	Log               kafkaconn.Log
	Origin            string     // the partition's origin, if the ledger has a position
	Now               ledger.Log // as the brokers report it
}

// FactsOf returns the facts that Redis has about a partition.
func FactsOf(state ledger.State, p ledger.Partition) Facts {
	return Facts{
		Partition: p, Found: state.Ledger[p.String()], Others: HasTopic(state, p.Topic),
		Ledger: len(state.Ledger), Windows: state.Windows, SchemaGone: state.Schema == "", Origin: state.Origins[p.String()],
	}
}

// HasTopic reports whether the ledger has partitions of a topic.
func HasTopic(state ledger.State, topic string) bool {
	for field := range state.Ledger {
		if isOf(field, topic) {
			return true
		}
	}
	return false
}

// isOf reports whether a ledger field is a partition of a topic.
func isOf(field, topic string) bool {
	i := strings.LastIndexByte(field, '/')
	return i >= 0 && field[:i] == topic
}

// Step is an action at the start.
type Step int

const (
	// GoOn continues from the position.
	GoOn Step = iota
	// Confirm waits to see whether the log still ends before the position.
	Confirm
	// Skip moves the position over a gap, and records an origin for it.
	Skip
	// Join starts an added partition of a topic that has already started.
	Join
	// Begin starts the whole topic, as configured.
	Begin
	// Recover starts the whole topic again: Redis was lost.
	Recover
	// Copy starts the whole topic where other shards started it.
	Copy
)

// Decision is a step and its position.
type Decision struct {
	Step Step
	At   ledger.Position // for GoOn, Confirm and Skip
}

// Decide applies the start table in its order.
func Decide(f Facts, onGap OnGap) (Decision, error) {
	name := f.Partition.String()
	at, err := ledger.Parse(f.Found)
	remedy := health.RebuildRemedy
	if _, err := ledger.Counted(f.Found); err != nil || f.SchemaGone {
		remedy = health.LedgerRemedy
	}
	switch {
	case f.Found != "" && errors.Is(err, ledger.ErrTorn):
		return Decision{}, &health.Halt{Reason: health.HaltTorn,
			What: fmt.Sprintf("the ledger of %s is at %s: a script died in the middle of a piece", name, f.Found), Remedy: remedy}
	case f.Found != "" && err != nil:
		return Decision{}, &health.Halt{Reason: health.HaltTorn, What: fmt.Sprintf("the ledger of %s is not readable: %v", name, err), Remedy: health.LedgerRemedy}
	case f.Ledger == 0 && f.Windows > 0:
		return Decision{}, &health.Halt{Reason: health.HaltOrphaned,
			What: fmt.Sprintf("Redis lists %d windows but has no ledger: which events they contain is unknown", f.Windows), Remedy: health.RebuildRemedy}
	case f.Ledger > 0 && f.SchemaGone:
		return Decision{}, &health.Halt{Reason: health.HaltSchema,
			What: "Redis has a ledger but no schema: the configuration that wrote the scores is unknown", Remedy: health.LedgerRemedy}
	case f.Found != "":
		if err := Recreated(f.Partition.Topic, f.Origin, f.Now); err != nil {
			return Decision{}, err
		}
		return placed(f, name, at, onGap)
	case f.Others:
		if f.Log.Start > 0 && onGap == GapHalts {
			return Decision{}, gap(name, 0, f.Log.Start)
		}
		return Decision{Step: Join}, nil
	case f.Elsewhere && f.Unread && !f.Committed:
		return Decision{Step: Copy}, nil
	case f.Elsewhere, f.Committed:
		return Decision{Step: Recover}, nil
	}
	return Decision{Step: Begin}, nil
}

// placed decides if the ledger has a position.
func placed(f Facts, name string, at ledger.Position, onGap OnGap) (Decision, error) {
	switch {
	case at.To > f.Log.End:
		return Decision{Confirm, at}, nil
	case at.From >= f.Log.Start:
		return Decision{GoOn, at}, nil
	case onGap == GapHalts:
		return Decision{}, gap(name, at.From, f.Log.Start)
	}
	// The rest of a sweep is still swept: the members from its hash on.
	if f.Log.Start < at.To {
		at.From = f.Log.Start
	} else {
		at = ledger.At(f.Log.Start)
	}
	return Decision{Skip, at}, nil
}

func gap(name string, from, start int64) *health.Halt {
	return &health.Halt{Reason: health.HaltGap,
		What:   fmt.Sprintf("the events of %s from offset %d to %d are gone from the log and were never counted", name, from, start-1),
		Remedy: "restore them if you can, or set on_gap: continue, which counts what is left and shows the windows as incomplete"}
}

// Truncated returns the halt for a log that ends before the ledger's position.
func Truncated(name string, at ledger.Position, log kafkaconn.Log) *health.Halt {
	return &health.Halt{Reason: health.HaltTruncated,
		What:   fmt.Sprintf("%s ends at offset %d, before the ledger's position %v: the topic was truncated by an unclean leader election", name, log.End, at),
		Remedy: "stop the consumers, delete the keys under the prefix and start them again: they read what the log has"}
}

// Lost returns the halt for a log that has lost counted events. end is where epoch l.Epoch ends by the leader's
// answer, -1 if unknown. The events before both counted and l.Offset were counted, and written in that epoch or
// an earlier one; those from end on are lost. It returns nil if the log has all of them, or end is unknown.
func Lost(name string, l trail.Lineage, end, counted int64) error {
	counted = min(counted, l.Offset)
	if end < 0 || end >= counted {
		return nil
	}
	return &health.Halt{Reason: health.HaltTruncated,
		What: fmt.Sprintf("the log of %s has lost the events from offset %d to %d, which count in the boards: the epoch %d of its leader ends at %d, "+
			"as after an unclean leader election", name, end, counted-1, l.Epoch, end),
		Remedy: RebuildLostRemedy}
}

// RebuildLostRemedy is for boards that count events which the log has lost.
const RebuildLostRemedy = "rebuild the boards from the log (consumer rebuild), which takes the lost events out of them and counts those that were written in their place"

// Recreated returns the halt for a topic that was deleted and created again, so that it is not the topic that
// the boards count. It returns nil if either topic id is unknown.
func Recreated(topic, origin string, now ledger.Log) error {
	was, err := ledger.ParseOrigin(origin)
	if err != nil || was.Log.Topic == "" || now.Topic == "" || was.Log.Topic == now.Topic {
		return nil //nolint:nilerr // an origin that can't be read is reported by those who need its time
	}
	return &health.Halt{Reason: health.HaltRecreated,
		What:   fmt.Sprintf("topic %s was deleted and created again: the boards count the topic with id %s, and Kafka has one with id %s", topic, was.Log.Topic, now.Topic),
		Remedy: "count the new topic under another redis.prefix and kafka.group; or, to begin again with empty boards, stop the consumers, delete the keys under the prefix and start them"}
}

// OtherSchema returns the halt for standings that were written with another schema.
func OtherSchema(err error) *health.Halt {
	return &health.Halt{Reason: health.HaltSchema, What: err.Error(), Remedy: "a partition of this topic can't be counted here until then"}
}
