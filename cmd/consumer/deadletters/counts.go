package deadletters

// This file counts dead letters by partition and reason.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// count is a row of the table. Events counts originals. Letters counts dead letters, which are more if some
// were written again. Reason is empty for records that are not dead letters.
type count struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Reason    string `json:"reason"`
	Events    int64  `json:"events"`
	Letters   int64  `json:"letters"`
	First     string `json:"first_written"`
	Last      string `json:"last_written"`

	first, last int64
}

func compare(a, b *count) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Reason, b.Reason))
}

// reasonTotal counts the dead letters with one reason in all partitions.
type reasonTotal struct {
	Reason  string `json:"reason"`
	Events  int64  `json:"events"`
	Letters int64  `json:"letters"`
}

// countsReport is the table as JSON; docs/json.md describes its fields.
type countsReport struct {
	Counts    []*count      `json:"counts"`
	Totals    []reasonTotal `json:"totals"`
	NoLetters []string      `json:"no_letters"`
}

// counts counts in one pass. If an original has several dead letters, each counts as a letter under its own
// reason, but only the first counts as an event. rows is sorted.
type counts struct {
	seen originals
	rows []*count
}

func (c *counts) add(l *deadLetter) {
	n := &count{Topic: l.source.Topic, Partition: l.source.Partition, Reason: l.Reason, first: l.written, last: l.written}
	if l.fault != "" {
		n.Topic, n.Partition = l.at.Topic, l.at.Partition
	}
	i, found := slices.BinarySearchFunc(c.rows, n, compare)
	if !found {
		c.rows = slices.Insert(c.rows, i, n)
	}
	n = c.rows[i]
	n.Letters++
	n.first, n.last = min(n.first, l.written), max(n.last, l.written)
	n.First, n.Last = units.TimeMS(n.first), units.TimeMS(n.last)
	if l.fault == "" && c.seen.add(l.source) {
		n.Events += l.events()
	}
}

// totals returns the counts by reason, most frequent first, without records that are not dead letters.
func (c *counts) totals() []reasonTotal {
	all := []reasonTotal{}
	for _, n := range c.rows {
		at := slices.IndexFunc(all, func(r reasonTotal) bool { return r.Reason == n.Reason })
		if at < 0 && n.Reason != "" {
			at, all = len(all), append(all, reasonTotal{Reason: n.Reason})
		}
		if at >= 0 {
			all[at].Events += n.Events
			all[at].Letters += n.Letters
		}
	}
	slices.SortFunc(all, func(a, b reasonTotal) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

func (c *counts) report(none []string) any {
	return countsReport{append([]*count{}, c.rows...), c.totals(), none}
}

func (c *counts) text(b *strings.Builder, zone *time.Location, _ int) {
	table := terminal.NewTable("PARTITION", "REASON", "EVENTS", "LETTERS", "FIRST", "LAST")
	table.Right[2], table.Right[3] = true, true
	var events, letters, others int64
	for _, n := range c.rows {
		reason, count := n.Reason, units.Thousands(n.Events)
		if reason == "" {
			reason, count = noDeadLetter, "-"
			others += n.Letters
		} else {
			events += n.Events
			letters += n.Letters
		}
		table.Add(terminal.Plain(n.Topic)+"/"+strconv.Itoa(n.Partition), reason, count, units.Thousands(n.Letters), timeIn(n.first, zone), timeIn(n.last, zone))
	}
	if len(c.rows) > 0 {
		table.Write(b)
		b.WriteByte('\n')
	}
	if totals := c.totals(); len(totals) > 0 && len(totals) < len(c.rows) { // otherwise every total would repeat a row
		byReason := terminal.NewTable("REASON", "EVENTS", "LETTERS")
		byReason.Right[1], byReason.Right[2] = true, true
		for _, n := range totals {
			byReason.Add(n.Reason, units.Thousands(n.Events), units.Thousands(n.Letters))
		}
		byReason.Write(b)
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s in %s", units.Plural(events, "event"), units.Plural(letters, "letter"))
	if others > 0 {
		fmt.Fprintf(b, ", and %s that no consumer wrote as a dead letter", units.Plural(others, "record"))
	}
}
