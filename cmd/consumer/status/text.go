package status

// This file writes the status as text, and draws it in place on a terminal.

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
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
	return terminal.WriteColoured(w, b.String(), colours, coloured)
}

// lines returns the lines that fit a terminal: first what is wrong, the tables last, because they are long.
func lines(s *cli.Shown[report], width, height int) []string {
	if s.Last == nil {
		return terminal.Fit(s.Trouble(width), width, height)
	}
	all := s.Last.blocks()
	var problems []string
	for _, problem := range s.Last.Problems {
		for _, line := range terminal.Wrapped(problem, width) {
			problems = append(problems, terminal.Red.In(line, s.Coloured))
		}
	}
	parts := [][]string{all[0].fitted(width, s.Coloured), s.Trouble(width), problems}
	for _, table := range []bool{false, true} {
		for _, b := range all[1:] {
			if b.table == table {
				parts = append(parts, b.fitted(width, s.Coloured))
			}
		}
	}
	return terminal.Stack(parts, width, height)
}

// fitted fits a block's lines into a width: it cuts the lines of tables and wraps others.
func (b *block) fitted(width int, coloured bool) (lines []string) {
	for _, line := range b.lines {
		if b.table {
			lines = append(lines, terminal.Cut(terminal.Harmless(line), width))
		} else {
			lines = append(lines, terminal.Wrapped(line, width)...)
		}
	}
	for i, line := range lines {
		lines[i] = terminal.Coloured(line, colours, coloured)
	}
	return lines
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
		all = append(all, block{s.table().Lines(), true})
	}
	all = append(all, block{shards.Lines(s.Shards), true})
	for _, section := range [][]string{s.halts(), s.otherGroups(), s.refilling(), s.incomplete(), s.duplicates(), s.rest()} {
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
		behind := "-"
		if p.BehindMS != nil {
			behind = units.ShortDuration(time.Duration(*p.BehindMS) * time.Millisecond)
		}
		t.Add(p.name(), number(p.LogStart), number(p.LogEnd), shards.Brief(plain(p.Position)), number(p.Committed), number(p.Lag), behind, p.state(), plain(p.Owner))
	}
	return t
}

func plain(text *string) string {
	if text == nil {
		return "-"
	}
	return terminal.Plain(*text)
}

// number formats an offset as the ledger does, without separators, so that it can be compared with the
// position and pasted elsewhere.
func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// by groups the names of the partitions by a text, in order. Partitions with an empty text are left out.
func (s *report) by(text func(*partition) string) (texts []string, names map[string][]string) {
	names = map[string][]string{}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		of := text(p)
		if of == "" {
			continue
		}
		if names[of] == nil {
			texts = append(texts, of)
		}
		names[of] = append(names[of], p.name())
	}
	return texts, names
}

// halts explains why partitions are not running, with the remedies.
func (s *report) halts() (lines []string) {
	texts, names := s.by((*partition).trouble)
	for _, text := range texts {
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
	left := int64(0)
	texts, names := s.by(func(p *partition) string {
		if p.RefillTo == nil {
			return ""
		}
		left += p.refillLeft
		return "refilling"
	})
	if len(texts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("refilling after Redis was lost or the boards were rebuilt: %s of %s still to read; until then boards are partial",
		units.Plural(left, "record"), units.Names(names["refilling"]))}
}

// otherGroups reports the partitions on which workers of another group have reported: both groups write the
// same ledger. Each event still counts once, but each group keeps finding that the other has moved the
// ledger, and its metrics cover only a part of the events.
func (s *report) otherGroups() (lines []string) {
	groups, names := s.by(func(p *partition) string {
		if p.Group == nil || *p.Group == s.Group || p.Stale {
			return ""
		}
		return *p.Group
	})
	for _, group := range groups {
		lines = append(lines, fmt.Sprintf("another group, %s, counts %s under this prefix\n  to do: unless this group has just been renamed, stop one of the two, or use another redis.prefix for it",
			terminal.Plain(group), units.Names(names[group])))
	}
	return lines
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
	return append([]string{"incomplete, as events may be missing from before the log began or the period was added, or from a gap in the log:"}, t.Lines()...)
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

// duplicates reports how far back duplicates are found: in records, and the shortest time that they cover.
func (s *report) duplicates() (lines []string) {
	least := map[string]int64{}
	texts, names := s.by(func(p *partition) string {
		if p.Duplicates == nil {
			return ""
		}
		text := units.Plural(*p.Duplicates, "record")
		if ms := p.DuplicatesMS; ms != nil {
			if known, ok := least[text]; !ok || *ms < known {
				least[text] = *ms
			}
		}
		return text
	})
	for _, text := range texts {
		line := strings.Join(names[text], ", ") + ": duplicates are found among the last " + text
		if ms, ok := least[text]; ok {
			line += ", which cover at least " + units.ShortDuration((time.Duration(ms) * time.Millisecond).Truncate(time.Second))
		}
		lines = append(lines, line)
	}
	return lines
}
