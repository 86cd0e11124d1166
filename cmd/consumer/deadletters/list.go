package deadletters

// consumer dead-letters list and export at work.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
)

func dlqNames(topics []string) string {
	var names []string
	for _, t := range topics {
		names = append(names, ingest.DeadLetterTopic(t))
	}
	return strings.Join(names, ", ")
}

// readLetters gives every letter that the filter takes. On a terminal that isn't written
// to otherwise it shows how far it has come.
func readLetters(ctx context.Context, p *cli.Program, r *letterReader, filter letterFilter, quiet bool, take func(*deadLetter) error) error {
	r.note = func(line string) { fmt.Fprintln(p.Stderr, line) }
	if _, ok := terminal.Width(p.Stderr); ok && !quiet {
		shown := terminal.ShowProgress(p.Stderr, "reading dead letters", "offsets", r.total, r.passed.Load)
		defer shown.Stop()
		r.note = shown.Note
	}
	return r.each(ctx, func(l *deadLetter) error {
		if !filter.takes(l) {
			return nil
		}
		return take(l)
	})
}

func countLetters(ctx context.Context, p *cli.Program, cfg *config.Config, scope letterScope, filter letterFilter, asJSON bool) error {
	r, err := openLetters(ctx, &cfg.Kafka, scope)
	if err != nil {
		return err
	}
	defer r.close()
	counts := newLetterCounts()
	err = readLetters(ctx, p, r, filter, false, func(l *deadLetter) error { counts.add(l); return nil })
	if err != nil {
		return err
	}
	if asJSON {
		return writeCountsJSON(p.Stdout, counts, r.none)
	}
	return writeLetterCounts(p.Stdout, counts, r.none, cfg.TimeZone)
}

func listLetters(ctx context.Context, p *cli.Program, cfg *config.Config, scope letterScope, filter letterFilter, limit int, asJSON bool) error {
	r, err := openLetters(ctx, &cfg.Kafka, scope)
	if err != nil {
		return err
	}
	defer r.close()
	list := newLetterList(limit)
	err = readLetters(ctx, p, r, filter, false, func(l *deadLetter) error { list.add(l); return nil })
	if err != nil {
		return err
	}
	if asJSON {
		return writeLetterJSON(p.Stdout, list, r.none)
	}
	return writeLetterList(p.Stdout, list, r.none, cfg.TimeZone)
}

// exportLetters writes to out, or to stdout where that is empty. A file is there only
// once it is whole.
func exportLetters(ctx context.Context, p *cli.Program, cfg *config.Config, scope letterScope, filter letterFilter, out string, withTime bool) (err error) {
	if out != "" {
		if _, err := os.Lstat(out); err == nil {
			return cli.Usagef("--out %s exists already: name another file, or remove it", out)
		}
	}
	r, err := openLetters(ctx, &cfg.Kafka, scope)
	if err != nil {
		return err
	}
	defer r.close()
	to, finish, err := exportTo(p.Stdout, out)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()

	_, onTerminal := terminal.Width(p.Stdout)
	seen, written, others := seenLetters{}, int64(0), int64(0)
	without := int64(0) // their values
	var line []byte
	err = readLetters(ctx, p, r, filter, out == "" && onTerminal, func(l *deadLetter) error {
		switch {
		case l.fault != "":
			others++
			return nil
		case !seen.first(l):
			return nil
		case l.value == nil:
			without++
		}
		written++
		line = append(l.appendLine(line[:0], withTime), '\n')
		if _, err := to.Write(line); err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w; the export isn't complete", err)
	}
	noteExport(p, r, written, others, without, out)
	return nil
}

// noteExport says on stderr what the lines don't.
func noteExport(p *cli.Program, r *letterReader, written, others, without int64, out string) {
	if out != "" {
		fmt.Fprintf(p.Stderr, "exported %s to %s\n", units.Plural(written, "dead letter"), out)
	}
	if none := nothingOf(r.none); none != "" {
		fmt.Fprintln(p.Stderr, "note: "+none)
	}
	if others > 0 {
		fmt.Fprintf(p.Stderr, "note: left out %s that no consumer wrote as a dead letter; list shows them\n", units.Plural(others, "record"))
	}
	if without > 0 {
		fmt.Fprintf(p.Stderr, "note: %s came without the value, which was too large; the original stands where dead_letter says\n", units.Plural(without, "letter"))
	}
}

// exportTo is what is written to, and finish ends that with the error that it went by:
// without one the file gets its name, else it is removed.
func exportTo(stdout io.Writer, out string) (w io.Writer, finish func(error) error, err error) {
	if out == "" {
		to := bufio.NewWriterSize(stdout, 64*units.KiB)
		return to, func(err error) error { return errors.Join(err, to.Flush()) }, nil
	}
	file, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+"-*")
	if err != nil {
		return nil, nil, cli.Usagef("--out: %w", err)
	}
	to := bufio.NewWriterSize(file, 64*units.KiB)
	return to, func(err error) error {
		if err == nil {
			err = to.Flush()
		}
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err == nil {
			return os.Rename(file.Name(), out)
		}
		return errors.Join(err, os.Remove(file.Name()))
	}, nil
}

const letterTime = "2006-01-02 15:04:05"

func zoneOf(name string) *time.Location {
	if zone, err := time.LoadLocation(name); err == nil {
		return zone
	}
	return time.UTC
}

func timeIn(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format(letterTime)
}

// notALetter is the reason that is shown of what has none.
const notALetter = "(no dead letter)"

func writeLetterCounts(w io.Writer, counts *letterCounts, none []string, timeZone string) error {
	zone, rows := zoneOf(timeZone), counts.rows()
	var b strings.Builder
	table := terminal.NewTable("PARTITION", "REASON", "EVENTS", "LETTERS", "FIRST", "LAST")
	table.Right[2], table.Right[3] = true, true
	var events, letters, others int64
	for _, n := range rows {
		reason, count := n.Reason, units.Thousands(n.Events)
		if reason == "" {
			reason, count = notALetter, "-"
			others += n.Letters
		} else {
			events += n.Events
			letters += n.Letters
		}
		table.Add(terminal.Plain(n.Topic)+"/"+strconv.Itoa(n.Partition), reason, count, units.Thousands(n.Letters), timeIn(n.first, zone), timeIn(n.last, zone))
	}
	if len(rows) > 0 {
		table.Write(&b)
		b.WriteByte('\n')
	}
	if totals := counts.totals(); len(totals) > 0 && len(totals) < len(rows) { // else each is a row already
		byReason := terminal.NewTable("REASON", "EVENTS", "LETTERS")
		byReason.Right[1], byReason.Right[2] = true, true
		for _, n := range totals {
			byReason.Add(n.Reason, units.Thousands(n.Events), units.Thousands(n.Letters))
		}
		byReason.Write(&b)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s in %s", units.Plural(events, "event"), units.Plural(letters, "letter"))
	if others > 0 {
		fmt.Fprintf(&b, ", and %s that no consumer wrote as a dead letter", units.Plural(others, "record"))
	}
	fmt.Fprintf(&b, "; times are those of %s\n", zone)
	if text := nothingOf(none); text != "" {
		b.WriteString(text + "\n")
	}
	return terminal.Write(w, b.String())
}

func writeLetterList(w io.Writer, list *letterList, none []string, timeZone string) error {
	const key = 24 // columns
	zone := zoneOf(timeZone)
	var b strings.Builder
	table := terminal.NewTable("ORIGINAL", "IN DLQ", "WRITTEN", "REASON", "TIMES", "KEY", "MESSAGE")
	table.Right[1], table.Right[4] = true, true
	for _, l := range list.listed {
		written := timeIn(l.written, zone)
		if l.fault != "" {
			table.Add(l.dlq+"/"+strconv.Itoa(l.partition), strconv.FormatInt(l.offset, 10), written, notALetter, "-", terminal.Cut(keyText(l.key), key), l.fault)
			continue
		}
		table.Add(l.source.String(), strconv.FormatInt(l.offset, 10), written, l.reason, strconv.Itoa(l.times), terminal.Cut(keyText(l.key), key), terminal.Plain(l.message))
	}
	if len(list.listed) > 0 {
		if width, ok := terminal.Width(w); ok {
			table.Narrow(6, width)
		}
		table.Write(&b)
		b.WriteByte('\n')
	}
	fmt.Fprint(&b, units.Plural(int64(len(list.listed)), "event"))
	if list.more > 0 {
		fmt.Fprintf(&b, ", and %s more: see --limit and export", units.Thousands(list.more))
	}
	fmt.Fprintf(&b, "; times are those of %s\n", zone)
	if text := nothingOf(none); text != "" {
		b.WriteString(text + "\n")
	}
	return terminal.Write(w, b.String())
}

func keyText(key []byte) string {
	if key == nil {
		return "-"
	}
	return terminal.Plain(string(key))
}

// countsReport is the table of list as JSON, and listReport its letters; docs/json.md has
// their fields.
type countsReport struct {
	Counts    []letterCount `json:"counts"`
	Totals    []reasonTotal `json:"totals"`
	NoLetters []string      `json:"no_letters"`
}

func writeCountsJSON(w io.Writer, counts *letterCounts, none []string) error {
	return cli.WriteJSON(w, countsReport{counts.rows(), counts.totals(), append([]string{}, none...)})
}

type listReport struct {
	Letters   []letterReport `json:"letters"`
	More      int64          `json:"more"`
	NoLetters []string       `json:"no_letters"`
}

type letterReport struct {
	Times  int            `json:"times"`
	Letter jsontext.Value `json:"letter"`
}

// writeLetterJSON writes what export writes of each letter, and how often it is there.
func writeLetterJSON(w io.Writer, list *letterList, none []string) error {
	all := listReport{Letters: []letterReport{}, More: list.more, NoLetters: append([]string{}, none...)}
	for _, l := range list.listed {
		all.Letters = append(all.Letters, letterReport{l.times, l.asJSON()})
	}
	return cli.WriteJSON(w, all)
}
