package status

// This file writes the status as text.

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

var colours = map[string]terminal.Colour{
	"running": terminal.Green, "waiting": terminal.Yellow, "stale": terminal.Red, "halted": terminal.Red,
}

func write(w io.Writer, s *report, coloured bool) error {
	var b strings.Builder
	for i, block := range s.blocks() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Join(block.lines, "\n") + "\n")
	}
	if !coloured {
		return terminal.Write(w, b.String())
	}
	return terminal.WriteColoured(w, b.String(), colours)
}

// block holds lines that belong together.
type block struct {
	lines []string
	table bool // the lines must not be wrapped
}

// blocks returns the whole status as blocks, the summary first.
func (s *report) blocks() []block {
	all := []block{{lines: []string{fmt.Sprintf("group %s, prefix %s: %s", terminal.Plain(s.Group), s.Prefix, s.summary())}}}
	if len(s.Partitions) > 0 {
		var b strings.Builder
		s.table().Write(&b)
		all = append(all, block{strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), true})
	}
	all = append(all, block{shards.Lines(s.Shards), true})
	for _, section := range [][]string{s.halts(), s.otherGroups(), s.otherZones(), s.refilling(), s.incomplete(), s.duplicates(), s.rest()} {
		all = append(all, block{lines: section})
	}
	return slices.DeleteFunc(all, func(b block) bool { return len(b.lines) == 0 })
}

// summary returns the status in one line: 3 partitions, 1 halted; lag 34, 1.2s behind.
func (s *report) summary() string {
	lag, oldest, unknown := int64(0), int64(0), 0
	states := map[string]int{}
	for _, p := range s.Partitions {
		states[p.state()]++
		if p.Lag == nil {
			unknown++
			continue
		}
		lag += *p.Lag
		if p.BehindMS != nil {
			oldest = max(oldest, *p.BehindMS)
		}
	}
	if len(s.Partitions) == 0 {
		return "no partitions"
	}
	text := units.Plural(int64(len(s.Partitions)), "partition")
	for _, state := range []string{"running", "waiting", "halted", "stale"} {
		if n := states[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if unknown < len(s.Partitions) {
		text += fmt.Sprintf("; lag %s, %s behind", units.Plural(lag, "record"), units.ShortDuration(time.Duration(oldest)*time.Millisecond))
	}
	if unknown > 0 {
		text += fmt.Sprintf("; lag of %d unknown", unknown)
	}
	return text
}

// state returns the text of the STATE column.
func (p *partition) state() string {
	switch {
	case p.State == nil:
		return "-"
	case p.Stale:
		return "stale"
	}
	return terminal.Plain(*p.State)
}

func (p *partition) name() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

func (s *report) table() *terminal.Table {
	t := terminal.NewTable("PARTITION", "LOG START", "LOG END", "POSITION", "COMMITTED", "LAG", "BEHIND", "STATE", "OWNER")
	for i := 1; i < 7; i++ {
		t.Right[i] = true
	}
	for _, p := range s.Partitions {
		position, owner, behind := "-", "-", "-"
		if p.Position != nil {
			position = shards.Brief(terminal.Plain(*p.Position))
		}
		if p.Owner != nil {
			owner = terminal.Plain(*p.Owner)
		}
		if p.BehindMS != nil {
			behind = units.ShortDuration(time.Duration(*p.BehindMS) * time.Millisecond)
		}
		t.Add(p.name(), number(p.LogStart), number(p.LogEnd), position, number(p.Committed), number(p.Lag), behind, p.state(), owner)
	}
	return t
}

// number formats an offset as the ledger does, without separators, so that it can be compared with the
// position and pasted elsewhere.
func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// halts explains why partitions are not running, with the remedies. Partitions with the same text share one
// entry.
func (s *report) halts() []string {
	var said, lines []string
	names := map[string][]string{}
	for _, p := range s.Partitions {
		text := p.trouble()
		if text != "" && names[text] == nil {
			said = append(said, text)
		}
		names[text] = append(names[text], p.name())
	}
	for _, text := range said {
		lines = append(lines, strings.Join(names[text], ", ")+" "+text)
	}
	return lines
}

func (p *partition) trouble() string {
	text := ""
	switch {
	case p.Stale:
		text = fmt.Sprintf("stale: the last report, %s ago, was %s; the process may have stopped, or cannot reach Redis",
			units.ShortDuration(p.staleFor.Truncate(time.Second)), terminal.Plain(*p.State))
	case p.State != nil && (*p.State != "running" || p.Reason != nil): // a running partition with a reason is slowed down
		text = terminal.Plain(*p.State)
	case p.State == nil && p.What != nil:
		text = "unknown"
	case p.State == nil && p.Position != nil:
		text = "no consumer is processing it"
	}
	if p.Reason != nil {
		text += " (" + terminal.Plain(*p.Reason) + ")"
	}
	if p.What != nil {
		text += ": " + terminal.Plain(*p.What)
	}
	if p.Remedy != nil {
		text += "\n  to do: " + terminal.Plain(*p.Remedy)
	}
	return text
}

// refilling reports what is being read again after Redis was lost.
func (s *report) refilling() []string {
	var fields []string
	left := int64(0)
	for _, p := range s.Partitions {
		if p.RefillTo != nil {
			fields = append(fields, p.name())
			left += p.refillLeft
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("refilling after Redis was lost or the boards were rebuilt: %s of %s still to read; until then boards are partial",
		units.Plural(left, "record"), units.Names(fields))}
}

// otherGroups reports the partitions on which workers of another group have reported: both groups write the
// same ledger. Each event still counts once, but each group keeps finding that the other has moved the
// ledger, and its metrics cover only a part of the events.
func (s *report) otherGroups() []string {
	var lines []string
	groups := map[string][]string{}
	for _, p := range s.Partitions {
		if p.Group != nil && *p.Group != s.Group && !p.Stale {
			groups[*p.Group] = append(groups[*p.Group], p.name())
		}
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		lines = append(lines, fmt.Sprintf("another group, %s, counts %s under this prefix\n  to do: unless this group has just been renamed, stop one of the two, or use another redis.prefix for it",
			terminal.Plain(group), units.Names(groups[group])))
	}
	return lines
}

// otherZones warns if consumers have different time zone data.
func (s *report) otherZones() []string {
	by := map[string][]string{}
	for _, p := range s.Partitions {
		if p.TimeZoneData != nil && !p.Stale {
			by[*p.TimeZoneData] = append(by[*p.TimeZoneData], p.name())
		}
	}
	if len(by) < 2 {
		return nil
	}
	lines := []string{"the consumers have different time zone data:"}
	for _, version := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, fmt.Sprintf("  %s: %s", terminal.Plain(version), units.Names(by[version])))
	}
	return append(lines, "  to do: give all of them the same version of the program, or of the system's data")
}

// incomplete returns one line for consecutive windows of a period that lack the same partitions.
func (s *report) incomplete() []string {
	if len(s.Incomplete) == 0 {
		return nil
	}
	t := &terminal.Table{Right: make([]bool, 3)}
	for i := 0; i < len(s.Incomplete); {
		first := s.Incomplete[i]
		last := first
		for i++; i < len(s.Incomplete) && s.Incomplete[i].on() == first.on() && slices.Equal(s.Incomplete[i].Partitions, first.Partitions); i++ {
			last = s.Incomplete[i]
		}
		windows := first.Window
		if last.Window != first.Window {
			windows = last.Window + " to " + first.Window
		}
		t.Add("  "+terminal.Plain(first.on()), windows, strings.Join(first.Partitions, ", "))
	}
	var b strings.Builder
	t.Write(&b)
	return []string{"incomplete, as events may be missing from before the log began or the period was added, or from a gap in the log:", strings.TrimSuffix(b.String(), "\n")}
}

// on names the period, and the board if only one board is concerned.
func (w *incompleteWindow) on() string {
	of := ledger.Added{Period: w.Period}
	if w.Board != nil {
		of.Board = *w.Board
	}
	return of.String()
}

func (s *report) rest() []string {
	var lines []string
	if s.Held {
		lines = append(lines, "a rebuild holds the boards: no events are applied until the swap or the expiry of its hold")
	}
	if s.Schema != nil {
		lines = append(lines, terminal.Plain(*s.Schema))
	}
	return lines
}

// duplicates reports how far back duplicates are found. Partitions with equal settings share one line.
func (s *report) duplicates() []string {
	var said []int64
	names, least, most := map[int64][]string{}, map[int64]int64{}, map[int64]int64{}
	for _, p := range s.Partitions {
		if p.Duplicates == nil {
			continue
		}
		n := *p.Duplicates
		if names[n] == nil {
			said = append(said, n)
		}
		names[n] = append(names[n], p.name())
		if ms := p.DuplicatesMS; ms != nil {
			if _, ok := least[n]; !ok {
				least[n] = *ms
			}
			least[n], most[n] = min(least[n], *ms), max(most[n], *ms)
		}
	}
	var lines []string
	for _, n := range said {
		line := fmt.Sprintf("%s: duplicates are found among the last %s", strings.Join(names[n], ", "), units.Plural(n, "record"))
		if _, ok := least[n]; ok {
			covers := func(ms int64) string {
				return units.ShortDuration((time.Duration(ms) * time.Millisecond).Truncate(time.Second))
			}
			if line += ", which cover " + covers(least[n]); covers(most[n]) != covers(least[n]) {
				line += " to " + covers(most[n])
			}
		}
		lines = append(lines, line)
	}
	return lines
}
