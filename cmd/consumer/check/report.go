package check

// What check found, and what to do about it. The judgement is pure: facts that
// others have gathered go in, findings come out.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/units"
)

// outcome is how a check came out.
type outcome string

const (
	outcomeOK        outcome = "ok"
	outcomeWarning   outcome = "warning"     // run works, and there is something to know
	outcomeWrong     outcome = "wrong"       // run ends, waits or halts a partition
	outcomeUnchecked outcome = "not checked" // it couldn't be looked at
)

// Sections of the report, in their order.
const (
	sectionConfiguration = "configuration"
	sectionKafka         = "kafka"
	sectionRedis         = "redis"
	sectionArchive       = "archive"
	sectionRecovery      = "recovery"
)

// checkReport is all of check. Its JSON never leaves out or renames a field, but for the
// shards where there is one.
type checkReport struct {
	At       string        `json:"at"`     // RFC 3339 with ms, in UTC
	Result   outcome       `json:"result"` // ok, warning or wrong
	Findings []finding     `json:"findings"`
	Starts   []startReport `json:"starts"` // every partition of the configured topics that Kafka named
	// Shards are there if there are several.
	Shards []shards.Report `json:"shards,omitempty"`
}

// finding is one check of one thing.
type finding struct {
	Section string  `json:"section"` // configuration, kafka, redis, archive or recovery
	Check   string  `json:"check"`   // what was looked at: retention
	Subject string  `json:"subject"` // of what: a topic, a broker; empty where there is only one
	Result  outcome `json:"result"`  // ok, warning, wrong or not checked
	Found   string  `json:"found"`   // or why it couldn't be looked at
	ToDo    string  `json:"to_do"`   // empty where there is nothing to do
}

// startReport is where a partition would start, were the consumer started now.
type startReport struct {
	Topic     string  `json:"topic"`
	Partition int     `json:"partition"`
	LogStart  *int64  `json:"log_start"`
	LogEnd    *int64  `json:"log_end"`
	Committed *int64  `json:"committed"`
	Position  *string `json:"position"` // the ledger's text
	Start     *string `json:"start"`    // ledger, gap, added, first_start, redis_lost or halt
	Offset    *int64  `json:"offset"`   // null where it halts
	Lag       *int64  `json:"lag"`      // records from there to the log's end
	// PartialBefore is the time before which windows that begin are incomplete.
	PartialBefore *string `json:"partial_before"`
	Reason        *string `json:"reason"` // of a halt
}

// section gathers the findings of one.
type section struct {
	name string
	all  []finding
}

func (s *section) add(result outcome, check, subject, found, todo string) {
	s.all = append(s.all, finding{Section: s.name, Check: check, Subject: subject, Result: result, Found: found, ToDo: todo})
}

func (s *section) ok(check, subject, found string) { s.add(outcomeOK, check, subject, found, "") }

func (s *section) warn(check, subject, found, todo string) {
	s.add(outcomeWarning, check, subject, found, todo)
}

func (s *section) wrong(check, subject, found, todo string) {
	s.add(outcomeWrong, check, subject, found, todo)
}

func (s *section) unchecked(check, subject, why, todo string) {
	s.add(outcomeUnchecked, check, subject, why, todo)
}

// conclude is the whole: wrong if anything is, a warning if anything has one.
func conclude(all []finding) outcome {
	for _, o := range []outcome{outcomeWrong, outcomeWarning} {
		if slices.ContainsFunc(all, func(f finding) bool { return f.Result == o }) {
			return o
		}
	}
	return outcomeOK
}

// count says how many came out how: 1 wrong, 2 warnings, 3 not checked.
func (r *checkReport) count() string {
	n := map[outcome]int{}
	for _, f := range r.Findings {
		n[f.Result]++
	}
	var parts []string
	for _, o := range []outcome{outcomeWrong, outcomeWarning, outcomeUnchecked, outcomeOK} {
		switch {
		case n[o] == 0:
		case o == outcomeWarning:
			parts = append(parts, units.Plural(int64(n[o]), string(o)))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	return strings.Join(parts, ", ")
}
