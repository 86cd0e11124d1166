package check

// This file defines the report: what check found, and the remedies, as JSON and as a table. The judge functions are pure: they turn
// the gathered facts into findings.

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// outcome is the result of a check.
type outcome string

const (
	outcomeOK        outcome = "ok"
	outcomeWarning   outcome = "warning"     // run works, but the operator should know or fix something
	outcomeWrong     outcome = "wrong"       // run would exit, wait or halt a partition
	outcomeUnchecked outcome = "not checked" // the check was not possible
)

// The sections of the report, in order.
const (
	sectionConfiguration = "configuration"
	sectionKafka         = "kafka"
	sectionRedis         = "redis"
	sectionArchive       = "archive"
	sectionRecovery      = "recovery"
)

// checkReport is the whole report. Its JSON is an interface: fields are never omitted or renamed, except
// that shards is absent if there is only one.
type checkReport struct {
	At       string        `json:"at"`     // RFC 3339 with ms, in UTC
	Result   outcome       `json:"result"` // ok, warning or wrong
	Findings []finding     `json:"findings"`
	Starts   []startReport `json:"starts"` // every partition of the configured topics that Kafka reported
	// Shards is present only if there are several.
	Shards []shards.Report `json:"shards,omitempty"`
}

// finding is the result of one check of one subject.
type finding struct {
	Section string  `json:"section"` // configuration, kafka, redis, archive or recovery
	Check   string  `json:"check"`   // the name of the check, such as retention
	Subject string  `json:"subject"` // what was checked, such as a topic or a broker; empty if there is only one
	Result  outcome `json:"result"`  // ok, warning, wrong or not checked
	Found   string  `json:"found"`   // what was found, or why the check was not possible
	ToDo    string  `json:"to_do"`   // the remedy; empty if none is needed
}

// startReport describes where a partition would start if the consumer started now.
type startReport struct {
	Topic     string  `json:"topic"`
	Partition int     `json:"partition"`
	LogStart  *int64  `json:"log_start"`
	LogEnd    *int64  `json:"log_end"`
	Committed *int64  `json:"committed"`
	Position  *string `json:"position"` // the ledger's text
	Start     *string `json:"start"`    // ledger, gap, added, first_start, redis_lost or halt
	Offset    *int64  `json:"offset"`   // null if it halts
	Lag       *int64  `json:"lag"`      // records from Offset to the log's end
	// PartialBefore: windows that start before this time are incomplete.
	PartialBefore *string `json:"partial_before"`
	Reason        *string `json:"reason"` // why it halts; null if it does not
}

// section collects the findings of one section.
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

// conclude returns the overall result: wrong if any finding is wrong, else warning if any is a warning,
// else ok.
func conclude(all []finding) outcome {
	for _, o := range []outcome{outcomeWrong, outcomeWarning} {
		if slices.ContainsFunc(all, func(f finding) bool { return f.Result == o }) {
			return o
		}
	}
	return outcomeOK
}

// count returns the number of findings per outcome: "1 wrong, 2 warnings, 3 not checked".
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

// The line width in columns: the terminal's width within these limits, or usualWidth without a terminal.
const (
	narrowest  = 80
	widest     = 120
	usualWidth = 100
)

var colours = map[string]terminal.Colour{
	string(outcomeOK): terminal.Green, string(outcomeUnchecked): terminal.Yellow, string(outcomeWarning): terminal.Yellow, "warnings": terminal.Yellow, string(outcomeWrong): terminal.Red,
}

// write writes lines that fit the terminal, unless a single word is longer.
func (r *checkReport) write(w io.Writer, coloured bool) error {
	width := usualWidth
	if columns, ok := terminal.Width(w); ok {
		width = min(max(columns, narrowest), widest)
	}
	t := terminal.NewTable("CHECK", "RESULT", "FOUND → WHAT TO DO")
	section := ""
	for _, f := range mergeSubjects(r.Findings) {
		if f.Section != section {
			section = f.Section
			t.Add("", "", "")
			t.Add(strings.ToUpper(section[:1])+section[1:], "", "")
		}
		text := terminal.Plain(f.Found)
		if f.Subject != "" {
			text = terminal.Plain(f.Subject) + ": " + text
		}
		if f.ToDo != "" {
			text += " → " + terminal.Plain(f.ToDo)
		}
		t.Add(f.Check, string(f.Result), text)
	}
	t.Wrap(2, width)
	var b strings.Builder
	t.Write(&b)
	if lines := shards.Lines(r.Shards); len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
	conclusion := "The consumer would work"
	if r.Result == outcomeWrong {
		conclusion = "The consumer wouldn't work like this"
	}
	fmt.Fprintf(&b, "\n%s: %s\n", conclusion, r.count())
	return terminal.WriteColoured(w, b.String(), colours, coloured)
}

// mergeSubjects merges findings that differ only in their subject.
func mergeSubjects(all []finding) (merged []finding) {
	at := map[finding]int{}
	for _, f := range all {
		alike := f
		alike.Subject = ""
		if i, ok := at[alike]; ok && f.Subject != "" {
			merged[i].Subject += ", " + f.Subject
			continue
		}
		if f.Subject != "" {
			at[alike] = len(merged)
		}
		merged = append(merged, f)
	}
	return merged
}
