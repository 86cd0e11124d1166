package explain

// This file writes the answer as text. Producers choose ids and messages, so they are escaped before they
// reach a terminal.

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/ranking"
	boardrules "github.com/standings/standings/internal/rules"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

// milliseconds is the format of times, with the precision that events have.
const milliseconds = "2006-01-02 15:04:05.000"

func (a *answer) write(out io.Writer, zoneName string) error {
	a.latest()
	zone, err := zoneinfo.Load(zoneName)
	if err != nil {
		zone = time.UTC
	}
	width, _ := terminal.Width(out)
	var s strings.Builder
	const minute = "2006-01-02 15:04"
	fmt.Fprintf(&s, "%s %s %s  [%s, %s) %s  %s\n\n", a.board, a.window.Period, a.window.Name,
		time.UnixMilli(a.window.Start).In(zone).Format(minute), time.UnixMilli(a.window.End).In(zone).Format(minute), zone, terminal.Plain(a.member))
	a.writeEvents(&s, zone, width)
	a.writeSides(&s, zone)
	s.WriteString("\n" + sentence(a.agree) + "\n")
	for _, n := range a.notes {
		s.WriteString("- " + terminal.OneLine(n.Text) + "\n")
	}
	return terminal.Write(out, s.String())
}

// writeEvents writes a row for every event in entries.
func (a *answer) writeEvents(s *strings.Builder, zone *time.Location, width int) {
	if n := a.leftOut(); n > 0 {
		fmt.Fprintf(s, "Left out: %s from before these (--limit).\n\n", units.Plural(n, "event"))
	}
	if len(a.entries) == 0 {
		s.WriteString("The log has no event of this member for this window.\n\n")
		return
	}
	what := "POINTS"
	if a.ruled {
		what = "FIELDS"
	}
	t := terminal.NewTable("RECORD", "RECORD TIME", "TIME", "EVENT ID", what, "RESULT", "WHY")
	t.Right[4] = !a.ruled
	for i := range a.entries {
		e := &a.entries[i]
		t.Add(fmt.Sprintf("%v@%d", e.partition, e.offset), timeText(e.recorded, e.recorded > 0, zone), timeText(e.time, e.time >= 0, zone),
			idText(e.id), a.changeText(e), resultText(e.result), a.why(e, zone))
	}
	if width > 0 {
		t.Narrow(3, width)
		t.Narrow(6, width)
	}
	t.Write(s)
	s.WriteString("\n" + a.countsText() + "\n\n")
}

// writeSides writes the standing that the events make next to the one in Redis.
func (a *answer) writeSides(s *strings.Builder, zone *time.Location) {
	heads := []string{"", "RANK", "POINTS", "REACHED AT"}
	if a.ruled {
		heads[2] = "FIELDS"
	}
	t := terminal.NewTable(heads...)
	t.Right[1], t.Right[2] = true, !a.ruled
	st, ok := a.standing(&a.total)
	if ok {
		t.Add(a.sideText("the events come to", "", st, zone)...)
	} else {
		t.Add("the events come to", "", "out of range", "")
	}
	t.Add(a.sideText("Redis has", rankOf(a.held.standing), a.held.standing, zone)...)
	t.Write(s)
}

func (a *answer) sideText(who, rank string, st *ranking.Standing, zone *time.Location) []string {
	if st == nil {
		return []string{who, rank, "-", "-"}
	}
	return []string{who, rank, fields.Text(a.fields(), st.Tuple, st.Points), st.ReachedAt.In(zone).Format(boardview.TimeForm(a.held.board.Tick))}
}

func sentence(agree *bool) string {
	switch {
	case agree == nil:
		return "They differ, which can have these reasons:"
	case *agree:
		return "They agree."
	}
	return "They differ: see consumer rebuild --dry-run --diff, which compares all standings with the log."
}

func timeText(ms int64, there bool, zone *time.Location) string {
	if !there {
		return "-"
	}
	return time.UnixMilli(ms).In(zone).Format(milliseconds)
}

func idText(id string) string {
	if id == "" {
		return "-"
	}
	return terminal.Plain(id)
}

// changeText returns what an event adds, or its value.
func (a *account) changeText(e *entry) string {
	if !e.readable {
		return "-"
	}
	text := fields.Text(a.fields(), e.tuple, e.tuple[0])
	if !a.ruled && a.rule.Score == boardrules.Sum && e.tuple[0] > 0 {
		text = "+" + text
	}
	return text
}

func resultText(r result) string { return strings.ReplaceAll(string(r), "_", " ") }

// why explains why an event does not count.
func (a *answer) why(e *entry, zone *time.Location) string {
	at := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format(time.DateTime) }
	switch e.result {
	case counted:
		return e.message
	case late:
		if e.time >= a.window.End {
			return "the period ended at " + at(a.window.End)
		}
		return "the window took records until " + at(a.window.End+a.lateness.Milliseconds())
	case final:
		return "the window was final by then: since " + at(a.held.seal.At.UnixMilli())
	case early:
		return "the period begins at " + at(a.window.Start)
	case duplicate:
		return "its event_id was just before it"
	case deadLetter:
		return e.reason + ": " + terminal.OneLine(e.message)
	case notApplied:
		return "behind the ledger"
	case notBegun:
		return "before the boards began"
	case erased:
		return "the member is erased"
	}
	return ""
}

// countsText returns the number of events per result.
func (a *account) countsText() string {
	c := &a.counts
	text := units.Plural(c.Counted, "event") + " counted"
	for _, other := range []struct {
		n    int64
		what string
	}{
		{c.Late, "late"}, {c.Final, "after it was final"}, {c.Early, "early"}, {c.Duplicates, "duplicate"}, {c.DeadLetters, "dead-lettered"},
		{c.NotApplied, "not applied yet"}, {c.BeforeStart, "from before the boards began"}, {c.Erased, "of an erased member"},
	} {
		if other.n > 0 {
			text += fmt.Sprintf(", %s %s", units.Thousands(other.n), other.what)
		}
	}
	return text
}

// rankOf returns the rank of a standing, or "-" without one.
func rankOf(st *ranking.Standing) string {
	if st == nil {
		return "-"
	}
	return units.Thousands(st.Rank)
}
