package deadletters

// This file counts dead letters by partition and reason.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// count is a row of the table. Events counts originals. Letters counts dead letters, which are more if some
// were written again. Reason is empty for records that are not dead letters.
type count struct {
	Topic     string           `json:"topic"`
	Partition int              `json:"partition"`
	Reason    string           `json:"reason"`
	Events    int64            `json:"events"`
	Letters   int64            `json:"letters"`
	First     cli.OptionalTime `json:"first_written"`
	Last      cli.OptionalTime `json:"last_written"`
}

// total counts the dead letters with one reason in all partitions.
type total struct {
	Reason  string `json:"reason"`
	Events  int64  `json:"events"`
	Letters int64  `json:"letters"`
}

// countsReport is the table as JSON; docs/json.md describes its fields.
type countsReport struct {
	Counts    []*count `json:"counts"`
	Totals    []total  `json:"totals"`
	NoLetters []string `json:"no_letters"`
}

// counts counts in one pass. If an original has several dead letters, each counts as a letter under its own
// reason, but only the first counts as an event. rows is sorted.
type counts struct {
	seen originals
	rows []*count
}

func (c *counts) add(l *deadLetter) {
	at := cli.OptionalTime(l.written)
	n := &count{Topic: l.source.Topic, Partition: l.source.Partition, Reason: l.Reason, First: at, Last: at}
	if l.fault != "" {
		n.Topic, n.Partition = l.at.Topic, l.at.Partition
	}
	i, found := slices.BinarySearchFunc(c.rows, n, func(a, b *count) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Reason, b.Reason))
	})
	if !found {
		c.rows = slices.Insert(c.rows, i, n)
	}
	n = c.rows[i]
	n.Letters++
	n.First, n.Last = min(n.First, at), max(n.Last, at)
	if l.fault == "" && c.seen.add(l.source) {
		n.Events += l.events()
	}
}

// totals returns the counts by reason, most frequent first, without records that are not dead letters.
func (c *counts) totals() []total {
	all := []total{}
	for _, n := range c.rows {
		at := slices.IndexFunc(all, func(r total) bool { return r.Reason == n.Reason })
		if at < 0 && n.Reason != "" {
			at, all = len(all), append(all, total{Reason: n.Reason})
		}
		if at >= 0 {
			all[at].Events += n.Events
			all[at].Letters += n.Letters
		}
	}
	slices.SortFunc(all, func(a, b total) int {
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
	others := int64(0)
	for _, n := range c.rows {
		reason, count := n.Reason, units.Thousands(n.Events)
		if reason == "" {
			reason, count = noDeadLetter, "-"
			others += n.Letters
		}
		table.Add(terminal.Plain(n.Topic)+"/"+strconv.Itoa(n.Partition), reason, count, units.Thousands(n.Letters), timeIn(int64(n.First), zone), timeIn(int64(n.Last), zone))
	}
	if len(c.rows) > 0 {
		table.Write(b)
		b.WriteByte('\n')
	}
	byReason := terminal.NewTable("REASON", "EVENTS", "LETTERS")
	byReason.Right[1], byReason.Right[2] = true, true
	var events, letters int64
	totals := c.totals()
	for _, n := range totals {
		byReason.Add(n.Reason, units.Thousands(n.Events), units.Thousands(n.Letters))
		events += n.Events
		letters += n.Letters
	}
	if len(totals) > 0 && len(totals) < len(c.rows) { // otherwise every total would repeat a row
		byReason.Write(b)
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s in %s", units.Plural(events, "event"), units.Plural(letters, "letter"))
	if others > 0 {
		fmt.Fprintf(b, ", and %s that no consumer wrote as a dead letter", units.Plural(others, "record"))
	}
}
