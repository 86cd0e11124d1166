package deadletters

// consumer dead-letters show at work: one letter in full.

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
)

// showLetter finds the letter of an original, or the one at a position of a dead-letter
// topic. A topic that is read is never taken for a dead-letter topic.
func showLetter(ctx context.Context, p *cli.Program, cfg *config.Config, at original, asJSON bool) error {
	source, isDLQ := strings.CutSuffix(at.topic, ingest.DeadLetterTopic(""))
	isDLQ = isDLQ && source != "" && !slices.Contains(cfg.Kafka.Topics, at.topic)
	if !isDLQ {
		source = at.topic
	}
	r, err := openLetters(ctx, &cfg.Kafka, letterScope{topics: []string{source}, partition: &at.partition, needed: true})
	if err != nil {
		return err
	}
	defer r.close()
	log := r.parts[0]
	if isDLQ {
		r.only(at.offset)
	}
	var last *deadLetter
	var stands []int64
	err = readLetters(ctx, p, r, letterFilter{}, false, func(l *deadLetter) error {
		if isDLQ && l.offset == at.offset || !isDLQ && l.fault == "" && l.source == at {
			l.keep()
			last = l
			stands = append(stands, l.offset)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last == nil {
		return fmt.Errorf("%w: nothing of %s in [%d, %d) of %s/%d", errNoSuchLetter, at, log.from, log.end, log.dlq, log.partition)
	}
	if asJSON {
		return cli.WriteJSON(p.Stdout, jsontext.Value(last.asJSON()))
	}
	return writeLetter(p.Stdout, last, stands, cfg.TimeZone)
}

// only narrows what is read to one offset, or to nothing where that isn't there.
func (r *letterReader) only(offset int64) {
	part := &r.parts[0]
	if part.from <= offset && offset < part.end {
		part.from, part.end = offset, offset+1
	} else {
		part.end = part.from
	}
	r.total = part.end - part.from
}

// writeLetter writes a letter for a person. stands are the offsets of all letters of its
// original.
func writeLetter(w io.Writer, l *deadLetter, stands []int64, timeZone string) error {
	zone := zoneOf(timeZone)
	var b strings.Builder
	field := func(name, text string) { fmt.Fprintf(&b, "%-10s %s\n", name, text) }
	if l.fault != "" {
		field("record", l.at())
		field("problem", l.fault)
	} else {
		field("original", l.source.String())
		field("reason", l.reason)
		field("message", terminal.Plain(l.message))
		field("letter", l.at()+lettersText(stands))
	}
	field("written", exactly(l.written, zone))
	if l.fault == "" {
		if l.time > 0 {
			field("time", exactly(l.time, zone))
		} else {
			field("time", "none")
		}
		if l.eventID != "" {
			field("event id", terminal.Plain(l.eventID))
		}
	}
	field("key", bytesText(l.key))
	for i, h := range l.headers {
		name := ""
		if i == 0 {
			name = "headers"
		}
		field(name, terminal.Plain(h.Key)+": "+bytesText(h.Value))
	}
	b.WriteString(valueText(l.value))
	_, err := io.WriteString(w, b.String())
	return err
}

func exactly(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format(letterTime+".000") + " " + zone.String()
}

// lettersText says how often an original was dead-lettered.
func lettersText(stands []int64) string {
	const most = 10
	if len(stands) < 2 {
		return ""
	}
	var others []string
	for _, at := range stands[max(0, len(stands)-1-most) : len(stands)-1] {
		others = append(others, fmt.Sprint("@", at))
	}
	more := ""
	if len(stands)-1 > most {
		more = "…, "
	}
	return fmt.Sprintf(", the last of %d: %s%s", len(stands), more, strings.Join(others, ", "))
}

// bytesText is a key or a header's value in a line: text, else hexadecimal.
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

// valueText is the value with a head line: JSON indented, text as it is, and else a dump.
func valueText(value []byte) string {
	size := units.Plural(int64(len(value)), "byte")
	switch {
	case value == nil:
		return "value      none: it was too large for a dead letter, and stands at the original's position\n"
	case len(value) == 0:
		return "value      (empty)\n"
	case IsObject(value):
		indented := jsontext.Value(slices.Clone(value))
		if err := indented.Indent(jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true)); err == nil {
			return "value      JSON, " + size + "\n" + visible(string(indented)) + "\n"
		}
	case !utf8.Valid(value):
		return "value      no text, " + size + "\n" + hex.Dump(value)
	}
	return "value      text, " + size + "\n" + strings.TrimSuffix(visible(string(value)), "\n") + "\n"
}

// visible keeps lines as they are, and escapes what a terminal would act on.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
