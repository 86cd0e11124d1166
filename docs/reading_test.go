package docs

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/embedded"
)

// A week in UTC, 2026-W47, in ms: the window of the scores in reading.md.
const weekStart, weekEnd = 1794787200000, 1795392000000

// vector is a row of the scores in reading.md.
type vector struct {
	layout                   Layout
	score                    float64
	points, ticks, reachedAt int64
}

func readingText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("reading.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fenced is the first block of a language in reading.md.
func fenced(t *testing.T, language string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(readingText(t))
	if block == nil {
		t.Fatalf("reading.md has no %s", language)
	}
	return block[1]
}

func vectors(t *testing.T) []vector {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(readable|wide)` \\| (\\d+) \\| (\\d+) \\| (\\d+) \\| `([^`]*)` \\| (-?\\d+) \\| (\\d+) \\| (\\d+) \\|$")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var all []vector
	for _, m := range row.FindAllStringSubmatch(readingText(t), -1) {
		score, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, vector{
			Layout{Kind: m[1], K: int(number(m[2])), Tick: number(m[3]), Max: number(m[4])},
			score, number(m[6]), number(m[7]), number(m[8]),
		})
	}
	if len(all) < 12 {
		t.Fatalf("only %d scores were found: the pattern is wrong", len(all))
	}
	return all
}

func TestTheScoresInTheReadersGuideAreTheCodecs(t *testing.T) {
	for _, v := range vectors(t) {
		l, err := codec.New(codec.Kind(v.layout.Kind), 180*time.Hour, v.layout.Max)
		if err != nil {
			t.Fatal(err)
		}
		if l.K != v.layout.K || l.Tick != v.layout.Tick {
			t.Errorf("weekly scores are %v, and the row has k %d and tick %d", l, v.layout.K, v.layout.Tick)
		}
		points, ticks, err := l.Decode(v.score)
		if err != nil || points != v.points || ticks != v.ticks {
			t.Errorf("%v is %d points and %d ticks by the row, %d and %d by the codec (%v)", v.score, v.points, v.ticks, points, ticks, err)
		}
		if at := l.Time(weekStart, weekEnd, ticks); at != v.reachedAt {
			t.Errorf("%v was reached at %d by the row, at %d by the codec", v.score, v.reachedAt, at)
		}
		if points, at := v.layout.Decode(v.score, weekStart, weekEnd); points != v.points || at != v.reachedAt {
			t.Errorf("the example in Go decodes %v as %d points at %d, want %d at %d", v.score, points, at, v.points, v.reachedAt)
		}
	}
}

func TestTheGoInTheReadersGuideIsWhatIsTested(t *testing.T) {
	source, err := os.ReadFile("reading_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "// reading.md begins here.\n\n")
	if got := fenced(t, "go"); got != code {
		t.Errorf("the Go in reading.md isn't that of reading_example_test.go:\n%s", got)
	}
}

// The examples read a board of each layout from a Redis, and find the rows of the table.
func TestTheExamplesInTheReadersGuideReadABoard(t *testing.T) {
	server, err := embedded.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	t.Cleanup(func() { _ = client.Close() })
	script := redis.NewScript(fenced(t, "lua"))
	boards := map[Layout][]Row{}
	for i, v := range vectors(t) {
		member := fmt.Sprintf("u%d", i)
		prefix := "lb-" + v.layout.Kind
		z := redis.Z{Score: v.score, Member: member}
		if err := client.ZAdd(t.Context(), prefix+":{0}:eu:weekly:2026-W47", z).Err(); err != nil {
			t.Fatal(err)
		}
		boards[v.layout] = append(boards[v.layout], Row{member, v.points, v.reachedAt})
	}
	for l, want := range boards {
		prefix := "lb-" + l.Kind
		schema := fmt.Sprintf(`{"periods":{"weekly":{"k":%d,"layout":%q,"max":%d,"tick":%d}}}`, l.K, l.Kind, l.Max, l.Tick)
		listing := fmt.Sprintf("%d %d %d", weekStart, weekEnd, time.Now().Add(time.Hour).UnixMilli())
		key := prefix + ":{0}:"
		if err := client.Set(t.Context(), key+"schema", schema, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.HSet(t.Context(), key+"windows", "eu:weekly:2026-W47", listing).Err(); err != nil {
			t.Fatal(err)
		}
		rows, err := Top(t.Context(), client, prefix, "eu", "weekly", "2026-W47", 100)
		if err != nil || len(rows) != len(want) {
			t.Fatalf("%d rows of %d: %v", len(rows), len(want), err)
		}
		byMember := map[string]Row{}
		for i, r := range rows {
			byMember[r.Member] = r
			if i > 0 && r.Points > rows[i-1].Points {
				t.Errorf("%s: row %d has more points than the one above", l.Kind, i)
			}
		}
		for _, w := range want {
			if byMember[w.Member] != w {
				t.Errorf("%s: the Go reads %+v, want %+v", l.Kind, byMember[w.Member], w)
			}
		}
		var flat []any
		for _, r := range rows {
			flat = append(flat, r.Member, r.Points, r.ReachedAt)
		}
		got, err := script.Run(t.Context(), client, []string{key + "schema", key + "windows", key + "eu:weekly:2026-W47"},
			"weekly", "eu:weekly:2026-W47", 100).Slice()
		if err != nil || !reflect.DeepEqual(got, flat) {
			t.Errorf("%s: the Lua reads %v, %v; the Go %v", l.Kind, got, err, flat)
		}
	}
	if _, err := Top(t.Context(), client, "lb-wide", "eu", "weekly", "2026-W46", 10); err != redis.Nil { //nolint:errorlint // as the document says
		t.Errorf("a window that isn't there: %v", err)
	}
}
