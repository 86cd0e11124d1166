package deadletters

// This file implements consumer dead-letters list.

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

// listing is the output of list: counts, or the first dead letters.
type listing interface {
	add(*deadLetter)
	report(none []string) any // the JSON; none lists the topics without a dead-letter topic
	text(b *strings.Builder, zone *time.Location, width int)
}

// list reads the dead letters in scope and writes the listing.
func list(ctx context.Context, p *cli.Program, cfg *config.Config, s scope, of listing, asJSON bool) error {
	zone, err := zoneinfo.Load(cfg.TimeZone)
	if err != nil {
		return err
	}
	r, err := open(ctx, p, &cfg.Kafka, s)
	if err != nil {
		return err
	}
	defer r.Close()
	err = r.each(ctx, false, func(l *deadLetter) error { of.add(l); return nil })
	if err != nil {
		return err
	}
	if asJSON {
		return cli.WriteJSON(p.Stdout, of.report(append([]string{}, r.none...)))
	}
	return writeListing(p.Stdout, of, r.none, zone)
}

func writeListing(w io.Writer, of listing, none []string, zone *time.Location) error {
	var b strings.Builder
	width, _ := terminal.Width(w)
	of.text(&b, zone, width)
	fmt.Fprintf(&b, "; times are those of %s\n", zone)
	if len(none) > 0 {
		b.WriteString(nothingOf(none) + "\n")
	}
	return terminal.Write(w, b.String())
}

// firstOnes holds the first dead letters up to the limit, each with the number of dead letters of its
// original, and counts the rest.
type firstOnes struct {
	limit  int
	seen   originals
	held   map[Position]*listed
	listed []*listed
	more   int64 // events beyond the limit
}

type listed struct {
	Times  int            `json:"times"`  // number of dead letters of this original, including this one
	Letter jsontext.Value `json:"letter"` // in the form that export writes

	l *deadLetter
}

func (c *firstOnes) add(l *deadLetter) {
	if l.fault == "" && !c.seen.add(l.source) {
		if held := c.held[l.source]; held != nil {
			held.Times++
		}
		return
	}
	if len(c.listed) == c.limit {
		c.more += l.events()
		return
	}
	l.keep()
	one := &listed{Times: 1, l: l}
	c.listed = append(c.listed, one)
	if l.fault == "" {
		c.held[l.source] = one
	}
}

// listReport is the JSON; docs/json.md describes its fields.
type listReport struct {
	Letters   []*listed `json:"letters"`
	More      int64     `json:"more"`
	NoLetters []string  `json:"no_letters"`
}

func (c *firstOnes) report(none []string) any {
	for _, one := range c.listed {
		one.Letter = one.l.asJSON()
	}
	return listReport{append([]*listed{}, c.listed...), c.more, none}
}

// noDeadLetter is shown as the reason of records that are not dead letters.
const noDeadLetter = "(no dead letter)"

func (c *firstOnes) text(b *strings.Builder, zone *time.Location, width int) {
	const columns = 24 // maximum width of a key
	table := terminal.NewTable("ORIGINAL", "IN DLQ", "WRITTEN", "REASON", "TIMES", "KEY", "MESSAGE")
	table.Right[1], table.Right[4] = true, true
	events := int64(0)
	for _, one := range c.listed {
		l := one.l
		events += l.events()
		key := "-"
		if l.key != nil {
			key = terminal.Cut(terminal.Plain(string(l.key)), columns)
		}
		of, reason, times, message := l.original(), l.Reason, strconv.Itoa(one.Times), terminal.Plain(l.Message)
		if l.fault != "" {
			of, reason, times, message = l.at.partition().String(), noDeadLetter, "-", l.fault
		}
		table.Add(of, strconv.FormatInt(l.at.Offset, 10), timeIn(l.written, zone), reason, times, key, message)
	}
	if len(c.listed) > 0 {
		if width > 0 {
			table.Narrow(6, width)
		}
		table.Write(b)
		b.WriteByte('\n')
	}
	b.WriteString(units.Plural(events, "event"))
	if c.more > 0 {
		fmt.Fprintf(b, ", and %s more: see --limit and export", units.Thousands(c.more))
	}
}

func timeIn(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format(time.DateTime)
}
