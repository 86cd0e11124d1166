package rebuild

// This file writes a rebuild's plan, progress and result as text.

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// show shows the progress to a person.
type show struct {
	w        io.Writer
	progress atomic.Pointer[terminal.Progress] // nil while no bar is shown
}

func (s *show) note(line string) {
	if bar := s.progress.Load(); bar != nil {
		bar.Note(line)
		return
	}
	fmt.Fprintln(s.w, terminal.OneLine(line))
}

func (s *show) reading(total int64, through func() int64) (ended func()) {
	bar := terminal.ShowProgress(s.w, "reading", "offsets", total, through)
	s.progress.Store(bar)
	return func() {
		s.progress.Store(nil)
		bar.Stop()
	}
}

func (s *show) planned(p *rebuild.Plan) {
	t := terminal.NewTable("PARTITION", "FROM", "TO", "RECORDS", "COMPLETE SINCE")
	t.Right[1], t.Right[2], t.Right[3] = true, true, true
	for _, start := range p.Starts {
		until := p.Until[start.Field]
		t.Add(start.Field, units.Thousands(start.At), units.Thousands(until), units.Thousands(until-start.At), completeSince(start))
	}
	var b strings.Builder
	t.Write(&b)
	fmt.Fprintf(&b, "\n%s\n\n", sayActions(p, true))
	_ = terminal.Write(s.w, b.String()) // a failed write to stderr cannot be reported
}

func completeSince(s replay.Start) string {
	if s.Origin.Time == 0 {
		return "the beginning"
	}
	at := time.UnixMilli(s.Origin.Time).UTC().Format(time.RFC3339)
	if s.LogStart {
		at += ", as far as the log goes back"
	}
	return at
}

// mostKept is the maximum number of windows that are named; --json has all of them.
const mostKept = 30

// sayActions describes what will happen to the windows (ahead), or what happened.
func sayActions(p *rebuild.Plan, ahead bool) string {
	count := map[shadow.Action]int{}
	var kept []int
	for i := range p.Windows {
		w := &p.Windows[i]
		count[w.Action]++
		if w.Action == shadow.Kept || w.Action == shadow.LeftOut || w.Incomplete {
			kept = append(kept, i)
		}
	}
	var b strings.Builder
	verb := "were"
	if ahead {
		verb = "are to be"
	}
	fmt.Fprintf(&b, "%s %s replaced, %s kept", units.Plural(int64(count[shadow.Replaced]), "window"), verb, units.Thousands(int64(count[shadow.Kept])))
	if n := count[shadow.Dropped]; n > 0 {
		fmt.Fprintf(&b, ", %s dropped, as the log has no members in them", units.Thousands(int64(n)))
	}
	if len(kept) == 0 {
		return b.String() + "."
	}
	b.WriteString(":\n")
	t := terminal.NewTable("WINDOW", "IS", "WHY")
	for _, i := range kept[:min(len(kept), mostKept)] {
		w, why := &p.Windows[i], p.Windows[i].Why
		if w.Incomplete {
			why = strings.TrimPrefix(why+"; shown as incomplete", "; ")
		}
		if p.Shards != nil && p.Shards[i] != nil {
			why = "on " + rebuild.ShardNames(p.Shards[i], p.Of) + ": " + why
		}
		t.Add(w.Listing(), w.Action.String(), why)
	}
	b.WriteString("\n")
	t.Write(&b)
	if more := len(kept) - mostKept; more > 0 {
		fmt.Fprintf(&b, "and %s more: --json has all of them\n", units.Thousands(int64(more)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writeResult writes the result as text.
func writeResult(w io.Writer, r *rebuild.Result, f *flags, zone *time.Location) error {
	if r.Holds == 0 && !r.Swapped {
		return terminal.Write(w, "Nothing is to be replaced.\n")
	}
	var b strings.Builder
	fmt.Fprintln(&b, sayActions(r.Plan, !r.Swapped))
	if f.dryRun || f.diff {
		writeDifferences(&b, r, f.diff, zone)
	}
	if len(r.Shards) > 1 {
		writeShards(&b, r)
	}
	held := "Ingestion was not paused; consumers refill the last events."
	switch last := milliseconds(r.Held); {
	case r.Holds == 0:
	case len(r.Shards) > 1:
		held = fmt.Sprintf("Ingestion was held shard by shard, for at most %s.", last)
	case r.Holds > 1:
		held = fmt.Sprintf("Ingestion was held %d times, the last time for %s.", r.Holds, last)
	default:
		held = fmt.Sprintf("Ingestion was held for %s.", last)
	}
	fmt.Fprintf(&b, "Read %s records in %s. %s\n", units.Thousands(r.Records), r.Took.Round(100*time.Millisecond), held)
	if r.TooLarge > 0 {
		fmt.Fprintf(&b, "%s in record batches that are too large for fold_memory (too_large): they don't count. Raise fold_memory and rebuild; consumer dead-letters list --reason too_large has those that consumers found.\n",
			units.Plural(r.TooLarge, "record"))
	}
	if !r.Swapped {
		b.WriteString("Nothing was changed: this was a dry run.\n")
	}
	return terminal.Write(w, b.String())
}

// writeShards writes when each shard was swapped.
func writeShards(b *strings.Builder, r *rebuild.Result) {
	t := terminal.NewTable("SHARD", "MASTER", "SWAPPED", "HELD", "HOLDS")
	t.Right[0], t.Right[3], t.Right[4] = true, true, true
	for i := range r.Shards {
		s := &r.Shards[i]
		at := "no"
		if s.Swapped {
			at = s.At.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
		held := "-"
		if s.Holds > 0 {
			held = milliseconds(s.Held).String()
		}
		t.Add(strconv.Itoa(i), s.Addr, at, held, strconv.Itoa(s.Holds))
	}
	b.WriteString("\n")
	t.Write(b)
	b.WriteString("\n")
}

// writeDifferences writes how many standings differ, in which windows, and with list the standings
// themselves.
func writeDifferences(b *strings.Builder, r *rebuild.Result, list bool, zone *time.Location) {
	n, windows := 0, 0
	t := terminal.NewTable("WINDOW", "DIFFER", "ONLY LIVE", "ONLY IN THE LOG")
	t.Right[1], t.Right[2], t.Right[3] = true, true, true
	for i := range r.Differ {
		d := &r.Differ[i]
		if d.Differ == 0 {
			continue
		}
		n += d.Differ
		windows++
		t.Add(d.Listing(), thousands(d.Differ), thousands(d.OnlyA), thousands(d.OnlyB))
	}
	atLeast := ""
	if !r.Exact {
		atLeast = "at least "
	}
	differ := thousands(n) + " standings differ"
	if n == 1 {
		differ = "1 standing differs"
	}
	fmt.Fprintf(b, "\n%s%s in %s.\n", atLeast, differ, units.Plural(int64(windows), "window"))
	if n == 0 {
		return
	}
	b.WriteString("\n")
	t.Write(b)
	b.WriteString("\n")
	if list {
		sides.Table(r.Differences, "LIVE", "IN THE LOG", zone).Write(b)
		if more := n - len(r.Differences); more > 0 {
			fmt.Fprintf(b, "and %s more: --limit\n", thousands(more))
		}
		fmt.Fprintf(b, "times are those of %s\n\n", zone)
	}
}

// milliseconds returns a duration in whole milliseconds, at least one.
func milliseconds(d time.Duration) time.Duration {
	return max(d.Round(time.Millisecond), time.Millisecond)
}

func thousands(n int) string { return units.Thousands(int64(n)) }
