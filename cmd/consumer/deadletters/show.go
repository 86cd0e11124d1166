package deadletters

// This file implements consumer dead-letters show, which shows one dead letter in full.

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

// show finds the dead letter of an original, or the one at a position of a dead-letter topic. A configured
// source topic is never treated as a dead-letter topic, even if its name ends in .dlq.
func show(ctx context.Context, p *cli.Program, cfg *config.Config, at Position, asJSON bool) error {
	zone, err := zoneinfo.Load(cfg.TimeZone)
	if err != nil {
		return err
	}
	source, isDLQ := strings.CutSuffix(at.Topic, event.DeadLetterTopic(""))
	isDLQ = isDLQ && source != "" && !slices.Contains(cfg.Kafka.Topics, at.Topic)
	if !isDLQ {
		source = at.Topic
	}
	r, err := open(ctx, p, &cfg.Kafka, scope{topics: []string{source}, partition: &at.Partition, needed: true})
	if err != nil {
		return err
	}
	defer r.Close()
	log := *r.dead[0]
	if isDLQ { // read only this record, if it exists
		r.dead[0].From, r.dead[0].End = max(log.From, at.Offset), min(log.End, at.Offset+1)
	}
	var last *deadLetter
	times := 0
	err = r.each(ctx, false, func(l *deadLetter) error {
		if isDLQ && l.at == at || !isDLQ && l.of(at) {
			l.keep()
			last = l
			times++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last == nil {
		return fmt.Errorf("no dead letter of %s in [%d, %d) of %s/%d", at, log.From, log.End, log.Topic, log.Partition)
	}
	if asJSON {
		return cli.WriteJSON(p.Stdout, jsontext.Value(last.asJSON()))
	}
	return last.write(p.Stdout, times, zone)
}

// write writes a dead letter for a person. times is the number of dead letters of its original.
func (l *deadLetter) write(w io.Writer, times int, zone *time.Location) error {
	var b strings.Builder
	field := func(name, text string) { fmt.Fprintf(&b, "%-10s %s\n", name, text) }
	if l.fault != "" {
		field("record", l.at.String())
		field("problem", l.fault)
	} else {
		field("original", l.original())
		field("reason", terminal.Plain(l.Reason))
		field("message", terminal.Plain(l.Message))
		letter := l.at.String()
		if times > 1 {
			letter += fmt.Sprintf(", the last of %d", times)
		}
		field("letter", letter)
	}
	field("written", exactly(l.written, zone))
	if l.fault == "" && l.Time > 0 {
		field("time", exactly(l.Time, zone))
	} else if l.fault == "" {
		field("time", "none")
	}
	if l.EventID != "" {
		field("event id", terminal.Plain(l.EventID))
	}
	field("key", bytesText(l.key))
	for i, h := range l.headers {
		name := ""
		if i == 0 {
			name = "headers"
		}
		field(name, terminal.Plain(h.Key)+": "+bytesText(h.Value))
	}
	if l.batch() {
		b.WriteString("value      none: the consumer could not read these records. Raise fold_memory, and rebuild while the log has them\n")
	} else {
		b.WriteString(valueText(l.value))
	}
	return terminal.Write(w, b.String())
}

func exactly(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format(time.DateTime+".000") + " " + zone.String()
}

// bytesText returns a key or a header's value as one line: as text, or in hexadecimal if it is not UTF-8.
func bytesText(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) == 0:
		return "(empty)"
	case !utf8.Valid(b):
		return "hex " + hex.EncodeToString(b)
	}
	return terminal.Plain(string(b))
}

// valueText returns the value below a header line: indented JSON, text, or a hex dump. Every line is
// indented, so that no line of a value can be mistaken for a field of the dead letter.
func valueText(value []byte) string {
	size := units.Plural(int64(len(value)), "byte")
	kind, text := "text", string(value)
	switch {
	case value == nil:
		return "value      none: it was too large for a dead letter, and is at the original's position\n"
	case len(value) == 0:
		return "value      (empty)\n"
	case IsObject(value):
		indented := jsontext.Value(slices.Clone(value))
		if err := indented.Indent(jsontext.WithIndent("  "), lastCounts); err == nil {
			kind, text = "JSON", string(indented)
		}
	case !utf8.Valid(value):
		kind, text = "no text", hex.Dump(value)
	}
	const indent = "    "
	return "value      " + kind + ", " + size + "\n" + indent + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+indent) + "\n"
}
