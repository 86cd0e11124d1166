package check

// Check, of what would happen if the consumer started now: the start table's
// outlook, told by what happens and not partition by partition.

import (
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
)

// reportStarts has a line for every partition that Kafka told of. State is nil
// where Redis didn't answer.
func reportStarts(topics []topicFacts, state *ledger.State) []startReport {
	all := []startReport{}
	for _, t := range topics {
		for p := range t.logs {
			r := startReport{Topic: t.name, Partition: p, LogStart: &t.logs[p].Start, LogEnd: &t.logs[p].End}
			if committed, ok := t.committed[p]; ok {
				r.Committed = &committed.Offset
			}
			if state != nil {
				if text, ok := state.Ledger[ledger.Field(t.name, p)]; ok {
					r.Position = &text
				}
			}
			if p < len(t.outlook) {
				r.addOutlook(&t.outlook[p])
			}
			all = append(all, r)
		}
	}
	return all
}

func (r *startReport) addOutlook(o *ingest.Outlook) {
	why := string(o.Why)
	r.Start = &why
	if o.Halt != nil {
		r.Reason = &o.Halt.Reason
		return
	}
	lag := max(0, *r.LogEnd-o.At)
	r.Offset, r.Lag = &o.At, &lag
	if o.Partial > 0 {
		at := units.TimeMS(o.Partial)
		r.PartialBefore = &at
	}
}

// judgeStarts has a finding for each way in which a topic's partitions start.
func judgeStarts(s *section, t *topicFacts, start string, notRedis error) {
	const check = "start"
	switch {
	case t.logsErr != nil:
		s.wrong(check, t.name, t.logsErr.Error(), "let this user describe and read the topic, and see that all partitions have leaders")
		return
	case t.committedErr != nil:
		s.unchecked(check, t.name, t.committedErr.Error(), "")
		return
	case notRedis != nil:
		s.unchecked(check, t.name, "without Redis nobody knows; "+t.ranges(), "")
		return
	case t.outlookErr != nil:
		s.unchecked(check, t.name, t.outlookErr.Error(), "")
		return
	}
	for _, why := range []ingest.Why{ingest.FromLedger, ingest.Added, ingest.First, ingest.Lost, ingest.OverGap} {
		var on startingAlike
		for p := range t.outlook {
			if t.outlook[p].Why == why {
				on.add(t, p)
			}
		}
		if on.n > 0 {
			on.judge(s, t, why, start)
		}
	}
	t.judgeHalts(s)
}

// startingAlike are partitions of a topic that start for the same reason.
type startingAlike struct {
	n       int
	offsets []string
	lag     int64
	partial int64 // the latest
}

func (on *startingAlike) add(t *topicFacts, p int) {
	on.n++
	o := t.outlook[p]
	on.offsets = append(on.offsets, fmt.Sprintf("%d at %d", p, o.At))
	on.lag += max(0, t.logs[p].End-o.At)
	on.partial = max(on.partial, o.Partial)
}

// shownPartitions is how many are named: the JSON has all.
const shownPartitions = 6

func (on *startingAlike) String() string {
	shown := on.offsets
	more := ""
	if len(shown) > shownPartitions {
		more = fmt.Sprintf(", … %d more", len(shown)-shownPartitions)
		shown = shown[:shownPartitions]
	}
	what := "partitions "
	if on.n == 1 {
		what = "partition "
	}
	return fmt.Sprintf("%s%s%s; %s to read", what, strings.Join(shown, ", "), more, units.Plural(on.lag, "record"))
}

func (on *startingAlike) judge(s *section, t *topicFacts, why ingest.Why, start string) {
	const check = "start"
	partial := ""
	if on.partial > 0 {
		partial = fmt.Sprintf("; windows that began before %s will be shown as incomplete", time.UnixMilli(on.partial).UTC().Format("2006-01-02 15:04:05Z"))
	}
	switch why {
	case ingest.FromLedger:
		s.ok(check, t.name, "goes on from the ledger: "+on.String())
	case ingest.Added:
		s.ok(check, t.name, "partitions were added and begin: "+on.String()+partial)
	case ingest.First:
		s.ok(check, t.name, fmt.Sprintf("first start (start: %s): %s%s", start, on, partial))
	case ingest.Lost:
		s.warn(check, t.name, fmt.Sprintf("Redis has nothing of a topic that this group has read: it would read the live windows again: %s%s", on, partial),
			"if Redis wasn't lost, look at redis.addresses, redis.db and redis.prefix")
	case ingest.OverGap:
		s.warn(check, t.name, fmt.Sprintf("events are gone from the log; on_gap says to go on: %s%s", on, partial),
			"restore the events first if you can: afterwards they can't be counted")
	case ingest.Halts:
	}
}

// judgeHalts names what would halt: for each reason the first, and how many more.
func (t *topicFacts) judgeHalts(s *section) {
	var order []string
	which := map[string][]int{}
	for p, o := range t.outlook {
		if o.Halt == nil {
			continue
		}
		if which[o.Halt.Reason] == nil {
			order = append(order, o.Halt.Reason)
		}
		which[o.Halt.Reason] = append(which[o.Halt.Reason], p)
	}
	for _, reason := range order {
		all := which[reason]
		halt := t.outlook[all[0]].Halt
		name, what, todo := fmt.Sprintf("partition %d", all[0]), halt.What, halt.Remedy
		if len(all) > 1 {
			name += fmt.Sprintf(" and %d more", len(all)-1)
		}
		if reason == ingest.HaltSchema {
			what, todo = "see schema, below", "" // which says it once for all
		}
		s.wrong("start", t.name, fmt.Sprintf("%s would halt (%s): %s", name, reason, what), todo)
	}
}

// ranges says what the log holds.
func (t *topicFacts) ranges() string {
	records, committed := int64(0), 0
	for p, log := range t.logs {
		records += max(0, log.End-log.Start)
		if _, ok := t.committed[p]; ok {
			committed++
		}
	}
	return fmt.Sprintf("the log holds %s; %d of %d partitions have committed offsets", units.Plural(records, "record"), committed, len(t.logs))
}
