package main

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
)

func textOf(lines []string) string { return terminal.Unstyled(strings.Join(lines, "\n")) }

func boardOf(members ...string) *ranking.Board {
	b := &ranking.Board{Name: "global", Window: periods.Window{Period: periods.Weekly, Name: "2100-W10"}, Tick: 10 * time.Millisecond, Members: int64(len(members))}
	for i, m := range members {
		b.Standings = append(b.Standings, ranking.Standing{Rank: int64(i + 1), Member: m, Points: 1000 - int64(i), ReachedAt: time.UnixMilli(4_108_665_600_470)})
	}
	return b
}

// layout returns the layout of the board now that was the board before a moment ago.
func layout(before, now *ranking.Board, width int) *boardview.Layout {
	var m boardview.Moves
	m.Add(time.Now(), before)
	m.Add(time.Now(), now)
	return &boardview.Layout{Width: width, Headings: true, Zone: time.UTC, Mark: m.Mark, Coloured: true}
}

func TestRowsHaveArrowsAndWhatThereIsRoomFor(t *testing.T) {
	now := boardOf("c", "日本語", "a", "new")
	now.Standings[1].Name = "Nihon \x1b[2J"
	before := boardOf("a", "日本語", "c")
	for width, want := range map[int]string{
		0: `
RANK  MEMBER  NAME           POINTS  REACHED AT
 ▲ 1  c                       1,000  2100-03-14 00:00:00.47
   2  日本語  Nihon \x1b[2J     999  2100-03-14 00:00:00.47
 ▼ 3  a                         998  2100-03-14 00:00:00.47
 ▲ 4  new                       997  2100-03-14 00:00:00.47`,
		45: `
RANK  MEMBER  NAME           POINTS
 ▲ 1  c                       1,000
   2  日本語  Nihon \x1b[2J     999
 ▼ 3  a                         998
 ▲ 4  new                       997`,
		18: `
RANK  MEM…  POINTS
 ▲ 1  c      1,000
   2  日…      999
 ▼ 3  a        998
 ▲ 4  new      997`,
	} {
		if got := "\n" + textOf(layout(before, now, width).Rows(now)); got != want {
			t.Errorf("%d wide:%s\nwant%s", width, got, want)
		}
	}
	l := layout(before, now, 80)
	if got := strings.Join(l.Rows(now), "\n"); !strings.Contains(got, " \x1b[32m▲\x1b[0m 1  c") || !strings.Contains(got, " \x1b[31m▼\x1b[0m 3  a") {
		t.Errorf("in colours: %q", got)
	}
	l.Coloured, l.Headings = false, false
	if got := strings.Join(l.Rows(now), "\n"); strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "▲ 1  c ") {
		t.Errorf("without colours and headings: %q", got)
	}
}

func TestRowsOfFieldsHaveAColumnForEach(t *testing.T) {
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: 999}, codec.Field{Name: "revives", Max: 99, Fewest: true})
	if err != nil {
		t.Fatal(err)
	}
	b := boardOf("a")
	b.Fields, b.Standings[0].Tuple = fields, codec.Tuple{42, 3}
	if got := textOf(layout(b, b, 40).Rows(b)); got != "RANK  MEMBER  STAGE  REVIVES\n   1  a          42        3" {
		t.Error(got)
	}
}

func TestATitleHasWhatThereIsRoomFor(t *testing.T) {
	for width, want := range map[int]string{
		0:  "global weekly 2100-W10  [1970-01-01 00:00, 1970-01-01 00:00) UTC  1 member",
		40: "global weekly 2100-W10  1 member", 30: "global weekly 2100-W10", 15: "global weekly", 6: "global", 4: "glo…",
	} {
		if got := boardview.Title(boardOf("a"), time.UTC, width); got != want {
			t.Errorf("%d wide: %q, want %q", width, got, want)
		}
	}
}

func TestNoRowIsWiderThanTheWidthNorActsOnATerminal(t *testing.T) {
	evil := boardOf("\x1b[2J\x07\u202egnp.\n", strings.Repeat("日本", 100), strings.Repeat("👩‍🚀", 40), "", " a ", "▲ 1")
	evil.Standings[0].Name = strings.Repeat("名\r", 60)
	evil.Standings[3].Rank, evil.Standings[4].Points = 1_000_000, -99_999_999
	for width := 1; width < 140; width++ {
		l := layout(boardOf(), evil, width)
		for _, line := range append(l.Rows(evil), boardview.Beside([][]string{l.Rows(evil), nil}, width, 3)...) {
			plain := terminal.Unstyled(line)
			if w := uniseg.StringWidth(strings.TrimRight(plain, " ")); w > width || strings.ContainsAny(plain, "\x1b\n\r\a\u202e") {
				t.Fatalf("%d wide: %d: %q", width, w, line)
			}
		}
	}
}

func TestColumnsStandSideBySide(t *testing.T) {
	red := terminal.Styled(string(terminal.Red), "日")
	if got := boardview.Beside([][]string{{"a", red}, {"b"}, {"c", "d", "e"}}, 3, 1); !slices.Equal(got, []string{"a   b   c", red + "      d", "        e"}) {
		t.Errorf("%q", got)
	}
}

func TestWhoHasMovedIsKnownWithinAWindow(t *testing.T) {
	before := boardOf("a", "b", "c")
	rank := func(member string, rank int64) ranking.Standing { return ranking.Standing{Member: member, Rank: rank} }
	other := boardOf("c", "b", "a")
	other.Window.Name = "2100-W11"
	page := boardOf("k", "l")
	for i := range page.Standings {
		page.Standings[i].Rank += 10
	}
	for i, c := range []struct {
		before *ranking.Board
		now    *ranking.Board
		st     ranking.Standing
		want   string
	}{
		{before, before, rank("c", 1), "▲ "}, {before, before, rank("a", 3), "▼ "}, {before, before, rank("b", 2), "  "},
		{before, before, rank("new", 2), "▲ "}, {before, before, rank("new", 9), "▲ "},
		{before, other, rank("c", 1), "  "}, {boardOf(), before, rank("a", 1), "  "}, {page, page, rank("new", 11), "  "},
	} {
		var m boardview.Moves
		m.Add(time.Now(), c.before)
		m.Add(time.Now(), c.now)
		if got := m.Mark(c.st); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

func TestAMoveIsShownForThreeSecondsOrUntilTheNextLook(t *testing.T) {
	was, is := boardOf("a", "b"), boardOf("b", "a")
	for every, want := range map[time.Duration]string{
		500 * time.Millisecond: " ▲▲▲▲▲▲  ", time.Second: " ▲▲▲     ", 2 * time.Second: " ▲▲      ", time.Minute: " ▲       ",
	} {
		var m boardview.Moves
		now, got := time.Now(), ""
		for look := range utf8.RuneCountInString(want) {
			b := is
			if look == 0 {
				b = was
			}
			m.Add(now.Add(time.Duration(look)*every), b)
			got += strings.TrimSuffix(m.Mark(b.Standings[0]), " ")
		}
		if got != want {
			t.Errorf("every %v: %s, want %s", every, got, want)
		}
	}
}

func TestTimesAreAsExactAsTheTick(t *testing.T) {
	for tick, want := range map[time.Duration]string{
		time.Millisecond: "05.678", 10 * time.Millisecond: "05.67", 41 * time.Millisecond: "05.6", 472 * time.Millisecond: "04:05", 64 * time.Second: "03:04",
	} {
		if got := time.Date(2100, 1, 2, 3, 4, 5, 678e6, time.UTC).Format(boardview.TimeForm(tick)); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %s", tick, got)
		}
	}
}
