package boardview

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

var styles = regexp.MustCompile(`\x1b\[[0-9]*m`)

func textOf(lines []string) string { return styles.ReplaceAllString(strings.Join(lines, "\n"), "") }

func boardOf(members ...string) *ranking.Board {
	b := &ranking.Board{Name: "global", Window: periods.Window{Period: periods.Weekly, Name: "2100-W10"}, Tick: 10 * time.Millisecond, Members: int64(len(members))}
	for i, m := range members {
		b.Standings = append(b.Standings, ranking.Standing{Rank: int64(i + 1), Member: m, Points: 1000 - int64(i), ReachedAt: time.UnixMilli(4_108_665_600_470)})
	}
	return b
}

// column is a board that was another one a moment ago.
func column(before, now *ranking.Board) *Column {
	return &Column{Board: now, Coloured: true, Zone: time.UTC, Moved: func(st ranking.Standing) int64 { return Moved(before, now, st) }}
}

func TestATableHasArrowsAndWhatThereIsRoomFor(t *testing.T) {
	now := boardOf("c", "日本語", "a", "new")
	now.Standings[1].Name = "Nihon \x1b[2J"
	c := column(boardOf("a", "日本語", "c"), now)
	for width, want := range map[int]string{
		80: `
RANK   MEMBER  NAME           POINTS  REACHED AT
   1 ▲ c                       1,000  2100-03-14 00:00:00.47
   2   日本語  Nihon \x1b[2J     999  2100-03-14 00:00:00.47
   3 ▼ a                         998  2100-03-14 00:00:00.47
   4 ▲ new                       997  2100-03-14 00:00:00.47`,
		50: `
RANK   MEMBER  NAME           POINTS
   1 ▲ c                       1,000
   2   日本語  Nihon \x1b[2J     999
   3 ▼ a                         998
   4 ▲ new                       997`,
		18: `
RANK   ME… POINTS
   1 ▲ c    1,000
   2   日…    999
   3 ▼ a      998
   4 ▲ new    997`,
	} {
		got := "\n" + textOf(c.Table(10, width))
		if width == 18 {
			got = regexp.MustCompile(` +`).ReplaceAllString(got, " ")
			want = regexp.MustCompile(` +`).ReplaceAllString(want, " ")
		}
		if got != want {
			t.Errorf("%d wide:%s\nwant%s", width, got, want)
		}
	}
	if got := strings.Join(c.Table(2, 80), "\n"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "\x1b[32m▲\x1b[0m") {
		t.Errorf("two rows: %q", got)
	}
	c.Coloured = false
	if got := strings.Join(c.Table(4, 80), "\n"); strings.Contains(got, "\x1b[3") || !strings.Contains(got, "▲") {
		t.Errorf("without colours: %q", got)
	}
}

func TestATableOfFieldsHasTheirNames(t *testing.T) {
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: 999}, codec.Field{Name: "revives", Max: 99, Fewest: true})
	if err != nil {
		t.Fatal(err)
	}
	b := boardOf("a")
	b.Fields, b.Standings[0].Tuple = fields, codec.Tuple{42, 3}
	if got := textOf(column(b, b).Table(1, 40)); got != "RANK   MEMBER  STAGE/REVIVES\n   1   a                42/3" {
		t.Error(got)
	}
}

func TestNoRowIsWiderThanTheWidthNorActsOnATerminal(t *testing.T) {
	evil := boardOf("\x1b[2J\x07\u202egnp.\n", strings.Repeat("日本", 100), strings.Repeat("👩‍🚀", 40), "", " a ")
	evil.Standings[0].Name = strings.Repeat("名\r", 60)
	evil.Standings[3].Rank, evil.Standings[4].Points = 1_000_000, -99_999_999
	c := column(boardOf(), evil)
	for width := 1; width < 140; width++ {
		for of, lines := range map[string][]string{"titled": c.Titled(6, width), "table": c.Table(6, width)} {
			for _, line := range lines {
				plain := styles.ReplaceAllString(line, "")
				if w := uniseg.StringWidth(plain); w > width || of == "titled" && width > 30 && w != width || strings.ContainsAny(plain, "\x1b\n\r\a\u202e") {
					t.Fatalf("%s, %d wide: %d: %q", of, width, w, line)
				}
			}
		}
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
		want   int64
	}{
		{before, before, rank("c", 1), 2}, {before, before, rank("a", 3), -2}, {before, before, rank("b", 2), 0},
		{before, before, rank("new", 2), 2}, {before, before, rank("new", 9), 1},
		{before, other, rank("c", 1), 0}, {boardOf(), before, rank("a", 1), 0}, {page, page, rank("new", 11), 0},
	} {
		if got := Moved(c.before, c.now, c.st); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
}

func TestAMoveIsShownForThreeSecondsOrUntilTheNextLook(t *testing.T) {
	was, is := boardOf("a", "b"), boardOf("b", "a")
	for every, want := range map[time.Duration]string{
		500 * time.Millisecond: "011111100", time.Second: "011100000", 2 * time.Second: "011000000", time.Minute: "010000000",
	} {
		var m Moves
		now, got := time.Now(), ""
		for look := range len(want) {
			b := is
			if look == 0 {
				b = was
			}
			m.Add(now.Add(time.Duration(look)*every), b)
			got += fmt.Sprint(m.Of(b.Standings[0]))
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
		if got := time.Date(2100, 1, 2, 3, 4, 5, 678e6, time.UTC).Format(TimeForm(tick)); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %s", tick, got)
		}
	}
}
