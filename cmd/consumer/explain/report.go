package explain

// The answer as JSON and as text. Its JSON is an interface: fields are never omitted or renamed, and a missing
// value is null.

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/ranking"
	boardrules "github.com/standings/standings/internal/rules"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

type report struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Start    string `json:"start"` // RFC 3339 with ms, in UTC, like all times here
	End      string `json:"end"`   // exclusive
	TimeZone string `json:"time_zone"`
	TickMS   int64  `json:"tick_ms"` // the precision of reached_at
	Member   string `json:"member"`
	Hash     string `json:"hash"`            // of the member; sweeps proceed in its order
	Shard    *int   `json:"shard,omitempty"` // the member's shard, if there are several

	Agree *bool  `json:"agree"` // null: unknown
	Notes []note `json:"notes"`

	Rank   *int64           `json:"rank"`     // null if the member has no standing in Redis
	Redis  *standing        `json:"in_redis"` // null if the member has no standing in Redis
	Log    *standing        `json:"in_log"`   // the standing that the counted events make; null if there are none
	Banned cli.OptionalText `json:"banned"`   // hidden or erased; null if the member is neither

	Counts     counts      `json:"counts"`
	Unread     int64       `json:"unread"` // records of this time that cannot be read well enough to tell whose they are
	Events     []entry     `json:"events"` // the latest events, by time
	LeftOut    int64       `json:"left_out"`
	Partitions []partition `json:"partitions"`
}

type standing struct {
	Points    *int64         `json:"points"` // null on a board with its own fields
	ReachedAt string         `json:"reached_at"`
	Fields    *fields.Values `json:"fields,omitempty"`
}

// partition describes how far a partition was read, and how far Redis has counted it.
type partition struct {
	Partition string           `json:"partition"`
	Position  cli.OptionalText `json:"position"` // null if the ledger lacks the partition
	From      *int64           `json:"from"`     // the first offset that can hold an event of the window; null if the partition cannot be read
	LogEnd    *int64           `json:"log_end"`
	Gone      bool             `json:"gone"` // events of the window may have been deleted before From
}

func timeText(t cli.OptionalTime, zone *time.Location) string {
	if t < 0 {
		return "-"
	}
	return time.UnixMilli(int64(t)).In(zone).Format("2006-01-02 15:04:05.000")
}

func (a *answer) report(zone string) *report {
	a.latest()
	w, h := a.window, a.held
	r := &report{
		Board: a.board, Period: string(w.Period), Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End), TimeZone: zone,
		TickMS: a.layout.Tick, Member: a.member, Hash: fmt.Sprintf("%016x", a.hash), Agree: a.agree, Notes: append([]note{}, a.notes...),
		Redis: a.standingJSON(h.standing), Banned: cli.OptionalText(h.banned),
		Counts: a.counts, Unread: a.unread, LeftOut: a.leftOut, Events: append([]entry{}, a.entries...), Partitions: []partition{},
	}
	if h.of > 1 {
		r.Shard = &h.shard
	}
	if h.standing != nil {
		r.Rank = &h.standing.Rank
	}
	if st, ok := a.standing(&a.total); ok {
		r.Log = a.standingJSON(st)
	}
	for _, s := range a.sources {
		p := partition{Partition: s.String(), Position: cli.OptionalText(s.text), Gone: s.gone}
		if s.missing == "" {
			p.From, p.LogEnd = &s.from, &s.log.End
		}
		r.Partitions = append(r.Partitions, p)
	}
	return r
}

func (a *account) standingJSON(st *ranking.Standing) *standing {
	if st == nil {
		return nil
	}
	s := &standing{ReachedAt: units.TimeMS(st.ReachedAt.UnixMilli()), Fields: fields.Of(a.fields, st.Tuple)}
	if s.Fields == nil {
		s.Points = &st.Points
	}
	return s
}

// write writes the answer as text.
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
	a.writeStandings(&s, zone)
	verdict := "They differ: see consumer rebuild --dry-run --diff, which compares all standings with the log."
	if a.agree == nil {
		verdict = "They differ, which can have these reasons:"
	} else if *a.agree {
		verdict = "They agree."
	}
	s.WriteString("\n" + verdict + "\n")
	for _, n := range a.notes {
		s.WriteString("- " + terminal.OneLine(n.Text) + "\n")
	}
	return terminal.Write(out, s.String())
}

// unit returns the head of the columns with points or fields.
func (a *account) unit() string {
	if a.fields.Len() > 0 {
		return "FIELDS"
	}
	return "POINTS"
}

// writeEvents writes a row for every event in entries.
func (a *answer) writeEvents(s *strings.Builder, zone *time.Location, width int) {
	if a.leftOut > 0 {
		fmt.Fprintf(s, "Left out: %s from before these (--limit).\n\n", units.Plural(a.leftOut, "event"))
	}
	if len(a.entries) == 0 {
		s.WriteString("The log has no event of this member for this window.\n\n")
		return
	}
	t := terminal.NewTable("RECORD", "RECORD TIME", "TIME", "EVENT ID", a.unit(), "RESULT", "WHY")
	t.Right[4] = a.fields.Len() == 0
	for i := range a.entries {
		e := &a.entries[i]
		id, change := "-", "-"
		if e.ID != "" {
			id = terminal.Plain(string(e.ID))
		}
		if e.readable {
			change = fields.Text(a.fields, e.tuple, e.tuple[0])
		}
		if e.Points != nil && *e.Points > 0 && a.rule.Score == boardrules.Sum {
			change = "+" + change
		}
		t.Add(fmt.Sprintf("%s@%d", e.Partition, e.Offset), timeText(e.Recorded, zone), timeText(e.Time, zone),
			id, change, strings.ReplaceAll(string(e.Result), "_", " "), a.why(e, zone))
	}
	if width > 0 {
		t.Narrow(3, width)
		t.Narrow(6, width)
	}
	t.Write(s)
	s.WriteString("\n" + a.countsText() + "\n\n")
}

// writeStandings writes the standing that the events make next to the one in Redis.
func (a *answer) writeStandings(s *strings.Builder, zone *time.Location) {
	t := terminal.NewTable("", "RANK", a.unit(), "REACHED AT")
	t.Right[1], t.Right[2] = true, a.fields.Len() == 0
	row := func(who, rank string, st *ranking.Standing) {
		if st == nil {
			t.Add(who, rank, "-", "-")
			return
		}
		t.Add(who, rank, fields.Text(a.fields, st.Tuple, st.Points), st.ReachedAt.In(zone).Format(boardview.TimeForm(a.held.board.Tick)))
	}
	if st, ok := a.standing(&a.total); ok {
		row("the events come to", "", st)
	} else {
		t.Add("the events come to", "", "out of range", "")
	}
	rank := "-"
	if st := a.held.standing; st != nil {
		rank = units.Thousands(st.Rank)
	}
	row("Redis has", rank, a.held.standing)
	t.Write(s)
}

// why explains why an event does not count.
func (a *answer) why(e *entry, zone *time.Location) string {
	at := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format(time.DateTime) }
	switch e.Result {
	case late:
		if int64(e.Time) >= a.window.End {
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
		return string(e.Reason) + ": " + terminal.OneLine(string(e.Message))
	case notApplied:
		return "behind the ledger"
	case notBegun:
		return "before the boards began"
	case erased:
		return "the member is erased"
	}
	return string(e.Message) // of a counted event
}

// countsText returns the number of events per result.
func (a *account) countsText() string {
	text := units.Plural(a.counts.Counted, "event") + " counted"
	for _, other := range []struct {
		result result
		what   string
	}{
		{late, "late"}, {final, "after it was final"}, {early, "early"}, {duplicate, "duplicate"}, {deadLetter, "dead-lettered"},
		{notApplied, "not applied yet"}, {notBegun, "from before the boards began"}, {erased, "of an erased member"},
	} {
		if n := *a.counts.of(other.result); n > 0 {
			text += fmt.Sprintf(", %s %s", units.Thousands(n), other.what)
		}
	}
	return text
}
