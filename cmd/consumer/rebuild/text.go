package rebuild

// How a rebuild shows: what it is about to do, how far it is, and what came of it.

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rebuild"
)

// show tells a person how it goes.
type show struct {
	w        io.Writer
	zone     string
	progress atomic.Pointer[terminal.Progress] // while there is one
}

func (s *show) note(line string) {
	if bar := s.progress.Load(); bar != nil {
		bar.Note(line)
		return
	}
	fmt.Fprintln(s.w, line)
}

func (s *show) reading(total int64, through func() int64) (ended func()) {
	bar := terminal.ShowProgress(s.w, "reading", total, through)
	s.progress.Store(bar)
	return func() {
		s.progress.Store(nil)
		bar.Stop()
	}
}

func (s *show) planned(p *rebuild.Plan) {
	t := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PARTITION\tFROM\tTO\tRECORDS\tCOMPLETE SINCE")
	for _, start := range p.Starts {
		until := p.Until[start.Field]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", start.Field, units.Thousands(start.At), units.Thousands(until), units.Thousands(until-start.At), completeSince(start))
	}
	_ = t.Flush() // to a terminal that is gone there is nobody to tell
	fmt.Fprintf(s.w, "\n%s\n\n", sayFates(p, true))
}

func completeSince(s ingest.ReplayStart) string {
	if s.Origin.Time == 0 {
		return "the beginning"
	}
	at := time.UnixMilli(s.Origin.Time).UTC().Format(time.RFC3339)
	if s.LogStart {
		at += ", as far as the log goes back"
	}
	return at
}

// mostKept is how many windows are named; --json has all of them.
const mostKept = 30

// sayFates says what becomes of windows: will be, or was.
func sayFates(p *rebuild.Plan, ahead bool) string {
	count := map[ranking.Fate]int{}
	var kept []*ranking.Planned
	for i := range p.Windows {
		w := &p.Windows[i]
		count[w.Fate]++
		if w.Fate == ranking.Kept || w.Fate == ranking.LeftOut || w.Incomplete {
			kept = append(kept, w)
		}
	}
	var b strings.Builder
	verb := "were"
	if ahead {
		verb = "are to be"
	}
	fmt.Fprintf(&b, "%s %s replaced, %s kept", windowsText(count[ranking.Replaced]), verb, units.Thousands(int64(count[ranking.Kept])))
	if n := count[ranking.Dropped]; n > 0 {
		fmt.Fprintf(&b, ", %s dropped, as the log has nobody in them", units.Thousands(int64(n)))
	}
	if len(kept) == 0 {
		return b.String() + "."
	}
	b.WriteString(":\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, w := range kept[:min(len(kept), mostKept)] {
		why := w.Why
		if w.Incomplete {
			why = strings.TrimPrefix(why+"; shown as incomplete", "; ")
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", w.Listing(), w.Fate, why)
	}
	_ = t.Flush() // into memory
	if more := len(kept) - mostKept; more > 0 {
		fmt.Fprintf(&b, "  and %s more: --json has all of them\n", units.Thousands(int64(more)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func windowsText(n int) string {
	if n == 1 {
		return "1 window"
	}
	return units.Thousands(int64(n)) + " windows"
}

// writeResult says what came of it.
func writeResult(w io.Writer, r *rebuild.Result, dry bool) {
	held := ""
	if r.Holds > 0 {
		held = fmt.Sprintf(" Ingestion was held for %s.", r.Held.Round(time.Millisecond))
		if r.Holds > 1 {
			held = fmt.Sprintf(" Ingestion was held %d times, at last for %s.", r.Holds, r.Held.Round(time.Millisecond))
		}
	}
	switch {
	case r.Swapped:
		fmt.Fprintf(w, "%s\nRead %s records in %s.%s\n", sayFates(r.Plan, false), units.Thousands(r.Records), r.Took.Round(100*time.Millisecond), held)
	case r.Holds == 0:
		fmt.Fprintln(w, "Nothing is to be replaced.")
	case dry:
		fmt.Fprintf(w, "%s\nRead %s records in %s.%s Nothing was changed: this was a dry run.\n",
			sayFates(r.Plan, true), units.Thousands(r.Records), r.Took.Round(100*time.Millisecond), held)
	}
}

// report is the result as JSON.
type report struct {
	Swapped    bool               `json:"swapped"`
	DryRun     bool               `json:"dry_run"`
	Records    int64              `json:"records"`
	TookMS     int64              `json:"took_ms"`
	HeldMS     int64              `json:"held_ms"`
	Holds      int                `json:"holds"`
	Partitions []rebuiltPartition `json:"partitions"`
	Windows    []rebuiltWindow    `json:"windows"`
}

type rebuiltPartition struct {
	Partition     string `json:"partition"`
	From          int64  `json:"from"`
	CompleteSince string `json:"complete_since,omitempty"` // from the beginning where it is absent
	LogStart      bool   `json:"log_start,omitempty"`      // the log goes back no further
}

type rebuiltWindow struct {
	Board      string `json:"board"`
	Period     string `json:"period"`
	Window     string `json:"window"`
	Fate       string `json:"fate"`
	Why        string `json:"why,omitempty"`
	Incomplete bool   `json:"incomplete,omitempty"`
}

func reportOf(r *rebuild.Result, dry bool) *report {
	all := &report{
		Swapped: r.Swapped, DryRun: dry, Records: r.Records, TookMS: r.Took.Milliseconds(), HeldMS: r.Held.Milliseconds(), Holds: r.Holds,
		Partitions: []rebuiltPartition{}, Windows: []rebuiltWindow{},
	}
	for _, s := range r.Plan.Starts {
		p := rebuiltPartition{Partition: s.Field, From: s.At, LogStart: s.LogStart}
		if s.Origin.Time > 0 {
			p.CompleteSince = time.UnixMilli(s.Origin.Time).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
		all.Partitions = append(all.Partitions, p)
	}
	for i := range r.Plan.Windows {
		w := &r.Plan.Windows[i]
		all.Windows = append(all.Windows, rebuiltWindow{w.Board, w.Period, w.Name, w.Fate.String(), w.Why, w.Incomplete})
	}
	return all
}

// noteLog is a log for a person who waits: warnings and errors alone, each a line.
type noteLog struct{ note func(string) }

func (noteLog) Enabled(l zapcore.Level) bool        { return l >= zapcore.WarnLevel }
func (n noteLog) With([]zapcore.Field) zapcore.Core { return n }
func (noteLog) Sync() error                         { return nil }
func (n noteLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if n.Enabled(e.Level) {
		return c.AddCore(e, n)
	}
	return c
}

func (n noteLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	line := e.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			line += ": " + err.Error()
		}
	}
	n.note(line)
	return nil
}
