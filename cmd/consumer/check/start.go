package check

// This file reports what would happen if the consumer started now. Findings are grouped by outcome, not by
// partition.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/units"
)

// reportStarts returns one line for every partition that Kafka reported. State is nil if Redis did not
// answer.
func reportStarts(topics []topicFacts, state *ledger.State) []startReport {
	all := []startReport{}
	for _, t := range topics {
		for p := range t.logs {
			r := startReport{Topic: t.name, Partition: p, LogStart: &t.logs[p].Start, LogEnd: &t.logs[p].End}
			if committed, ok := t.committed[p]; ok {
				r.Committed = &committed.Offset
			}
			if state != nil {
				if text, ok := state.Ledger[ledger.Partition{Topic: t.name, Number: p}.String()]; ok {
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

func (r *startReport) addOutlook(o *locate.Outlook) {
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

// judgeStarts adds one finding for each way in which partitions of a topic would start.
func judgeStarts(s *section, t *topicFacts, start string, notRedis error) {
	const check = "start"
	if notRedis != nil {
		notRedis = errors.New("unknown without Redis")
	}
	if t.logsErr != nil {
		s.wrong(check, t.name, t.logsErr.Error(), "let this user describe and read the topic, and see that all partitions have leaders")
		return
	}
	if err := cmp.Or(t.committedErr, notRedis, t.outlookErr); err != nil {
		s.unchecked(check, t.name, err.Error(), "")
		return
	}
	for _, why := range []locate.Why{locate.FromLedger, locate.Added, locate.First, locate.Lost, locate.OverGap} {
		t.judgeStart(s, why, start)
	}
	t.judgeHalts(s)
}

// judgeStart reports the partitions that would start for a given reason, if there are any.
func (t *topicFacts) judgeStart(s *section, why locate.Why, start string) {
	const check = "start"
	var offsets []string
	var lag, partial int64
	for p, o := range t.outlook {
		if o.Why == why {
			offsets = append(offsets, fmt.Sprintf("%d at %d", p, o.At))
			lag += max(0, t.logs[p].End-o.At)
			partial = max(partial, o.Partial)
		}
	}
	if len(offsets) == 0 {
		return
	}
	where := fmt.Sprintf("%s; %s to read", partitionsOf(offsets), units.Plural(lag, "record"))
	if partial > 0 {
		where += "; windows that began before " + utc(partial) + " will be shown as incomplete"
	}
	switch why {
	case locate.FromLedger:
		s.ok(check, t.name, "continues from the ledger: "+where)
	case locate.Added:
		s.ok(check, t.name, "added partitions start: "+where)
	case locate.First:
		s.ok(check, t.name, fmt.Sprintf("first start (start: %s): %s", start, where))
	case locate.Lost:
		s.warn(check, t.name, "Redis has no position of a topic that this group has read: the live windows would be read again: "+where,
			"if Redis was not lost, check redis.addresses, redis.db and redis.prefix")
	case locate.OverGap:
		s.warn(check, t.name, "events are gone from the log; continues because of on_gap: "+where,
			"restore the events first if you can: afterwards they cannot be counted")
	case locate.Halts:
	}
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }

// judgeHalts reports the partitions that would halt. For each reason it names the first one and the number
// of others.
func (t *topicFacts) judgeHalts(s *section) {
	which := map[string][]int{}
	for p, o := range t.outlook {
		if o.Halt != nil {
			which[o.Halt.Reason] = append(which[o.Halt.Reason], p)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(which)) {
		all := which[reason]
		halt := t.outlook[all[0]].Halt
		name, what, todo := fmt.Sprintf("partition %d", all[0]), halt.What, halt.Remedy
		if len(all) > 1 {
			name += fmt.Sprintf(" and %d more", len(all)-1)
		}
		if reason == health.HaltSchema {
			what, todo = "see schema, below", "" // the schema check reports it once for all partitions
		}
		s.wrong("start", t.name, fmt.Sprintf("%s would halt (%s): %s", name, reason, what), todo)
	}
}
