package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/docs/examples"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/rules"
)

// A week in UTC, 2026-W47, in ms: the window of the scores in reading.md.
const weekStart, weekEnd = 1794787200000, 1795392000000

// vector is a row of the scores in reading.md.
type vector struct {
	layout                   examples.Layout
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

// exampleText returns the text of a file in examples.
func exampleText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
			examples.Layout{Kind: m[1], K: int(number(m[2])), Tick: number(m[3]), Max: number(m[4])},
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
			t.Errorf("redis.go decodes %v as %d points at %d, want %d at %d", v.score, points, at, v.points, v.reachedAt)
		}
	}
}

// The examples read a board of each layout from a Redis, and find the rows of the table.
func TestTheExamplesOfReadingRedisReadABoard(t *testing.T) {
	client := startRedis(t)
	byLayout := map[examples.Layout]*exampleBoard{}
	for i, v := range vectors(t) {
		b := byLayout[v.layout]
		if b == nil {
			b = &exampleBoard{prefix: "lb-" + v.layout.Kind, period: "weekly", layout: v.layout}
			byLayout[v.layout] = b
		}
		b.scores = append(b.scores, v.score)
		b.want = append(b.want, examples.Row{Member: fmt.Sprintf("u%d", i), Points: v.points, ReachedAt: v.reachedAt})
	}
	for _, b := range byLayout {
		b.write(t, client)
		b.check(t, client)
	}
	if _, err := examples.Top(t.Context(), client, "lb-wide", "eu", "weekly", "2026-W46", 10); err != redis.Nil { //nolint:errorlint // as Top documents
		t.Errorf("a window that isn't there: %v", err)
	}
}

func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	server, err := embedded.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// exampleBoard is the window 2026-W47 of the board eu, as the consumer would write it. Its members
// are named as in want, and have the scores in the same order.
type exampleBoard struct {
	prefix, period string
	layout         examples.Layout // the period's, in the schema
	of             string          // JSON of a period of one's own
	rule           string          // empty: the default rule
	scores         []float64
	want           []examples.Row
}

func (b *exampleBoard) listing() string { return "eu:" + b.period + ":2026-W47" }

func (b *exampleBoard) write(t *testing.T, client *redis.Client) {
	t.Helper()
	key := b.prefix + ":{0}:"
	for i, score := range b.scores {
		if err := client.ZAdd(t.Context(), key+b.listing(), redis.Z{Score: score, Member: b.want[i].Member}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l := b.layout
	entry := fmt.Sprintf(`{"k":%d,"layout":%q,"max":%d,"tick":%d}`, l.K, l.Kind, l.Max, l.Tick)
	if b.of != "" {
		entry = strings.TrimSuffix(entry, "}") + `,"of":` + b.of + "}"
	}
	if err := client.Set(t.Context(), key+"schema", fmt.Sprintf(`{"periods":{%q:%s}}`, b.period, entry), 0).Err(); err != nil {
		t.Fatal(err)
	}
	rule := ""
	if b.rule != "" {
		rule = fmt.Sprintf(`"rule":%q,`, b.rule)
	}
	listing := fmt.Sprintf(`{"end":%d,"expires":%d,%s"start":%d}`, weekEnd, time.Now().Add(time.Hour).UnixMilli(), rule, weekStart)
	if err := client.HSet(t.Context(), key+"windows", b.listing(), listing).Err(); err != nil {
		t.Fatal(err)
	}
}

// check reads the board with redis.go and redis.lua.
func (b *exampleBoard) check(t *testing.T, client *redis.Client) {
	t.Helper()
	rows, err := examples.Top(t.Context(), client, b.prefix, "eu", b.period, "2026-W47", 100)
	if err != nil || len(rows) != len(b.want) {
		t.Fatalf("%s: %d rows of %d: %v", b.prefix, len(rows), len(b.want), err)
	}
	byMember := map[string]examples.Row{}
	for i, r := range rows {
		byMember[r.Member] = r
		if i > 0 && r.Points > rows[i-1].Points {
			t.Errorf("%s: row %d has more points than the one above", b.prefix, i)
		}
	}
	for _, w := range b.want {
		if !reflect.DeepEqual(byMember[w.Member], w) {
			t.Errorf("%s %s: redis.go reads %+v, want %+v", b.prefix, b.rule, byMember[w.Member], w)
		}
	}
	var flat []any
	for _, r := range rows {
		flat = append(flat, r.Member, b.points(t, r), r.ReachedAt)
	}
	key := b.prefix + ":{0}:"
	got, err := redis.NewScript(exampleText(t, "redis.lua")).Run(t.Context(), client,
		[]string{key + "schema", key + "windows", key + b.listing()}, b.period, b.listing(), 100).Slice()
	if err != nil || !reflect.DeepEqual(got, flat) {
		t.Errorf("%s %s: redis.lua reads %v, %v; redis.go %v", b.prefix, b.rule, got, err, flat)
	}
}

// points are a row's points as the Lua returns them: by a rule a list of its fields.
func (b *exampleBoard) points(t *testing.T, r examples.Row) any {
	t.Helper()
	if b.rule == "" {
		return r.Points
	}
	rule, err := rules.ParseRule(b.rule)
	if err != nil {
		t.Fatal(err)
	}
	var list []any
	for _, f := range rule.Fields.List() {
		list = append(list, r.Fields[f.Name])
	}
	return list
}
