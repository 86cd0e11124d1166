package docs

// Boards by rules, as reading.md has them.

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/docs/examples"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// ruledVector is a row of the scores of boards by rules in reading.md.
type ruledVector struct {
	kind, rule        string
	k                 int
	tick              int64
	score             float64
	packed, reachedAt int64
	fields            []int64
}

func ruledVectors(t *testing.T) []ruledVector {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(readable|wide)` \\| `(\\w+\\(\\S+\\))` \\| (\\d+) \\| (\\d+) \\| `([^`]*)` \\| (-?\\d+) \\| ([-\\d, ]+) \\| (\\d+) \\|$")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var all []ruledVector
	for _, m := range row.FindAllStringSubmatch(readingText(t), -1) {
		score, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		v := ruledVector{kind: m[1], rule: m[2], k: int(number(m[3])), tick: number(m[4]), score: score, packed: number(m[6]), reachedAt: number(m[8])}
		for value := range strings.SplitSeq(m[7], ", ") {
			v.fields = append(v.fields, number(value))
		}
		all = append(all, v)
	}
	if len(all) < 20 {
		t.Fatalf("only %d scores were found: the pattern is wrong", len(all))
	}
	return all
}

func parsedRule(t *testing.T, text string) rules.Rule {
	t.Helper()
	rule, err := rules.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// row is the row of a member that has the score.
func (v *ruledVector) row(t *testing.T, member string) examples.Row {
	t.Helper()
	fields := map[string]int64{}
	rule := parsedRule(t, v.rule)
	for i, f := range rule.Fields.List() {
		fields[f.Name] = v.fields[i]
	}
	return examples.Row{Member: member, Points: v.packed, ReachedAt: v.reachedAt, Fields: fields}
}

func TestTheScoresByRulesInTheReadersGuideAreTheCodecs(t *testing.T) {
	for _, v := range ruledVectors(t) {
		rule := parsedRule(t, v.rule)
		l, err := codec.NewTupleLayout(codec.Kind(v.kind), periods.Weekly.Length(), rule.Fields)
		if err != nil {
			t.Fatal(err)
		}
		if l.K != v.k || l.Tick != v.tick {
			t.Errorf("%s %s: k %d and tick %d by the row, %v by the codec", v.kind, v.rule, v.k, v.tick, l)
		}
		tuple, ticks, err := l.Decode(v.score)
		if err != nil || !reflect.DeepEqual(tuple[:rule.Fields.Len()], v.fields) || l.Time(weekStart, weekEnd, ticks) != v.reachedAt {
			t.Errorf("%s %s: %v is %v at %d by the row, %v and %d ticks by the codec (%v)", v.kind, v.rule, v.score, v.fields, v.reachedAt, tuple, ticks, err)
		}
		if packed, err := l.Packing.Pack(tuple); err != nil || packed != v.packed {
			t.Errorf("%s %s: %v is packed as %d by the row, as %d by the codec (%v)", v.kind, v.rule, v.fields, v.packed, packed, err)
		}
	}
}

func TestThePeriodsLengthsInTheReadersGuideAreThePeriods(t *testing.T) {
	for _, p := range periods.All() {
		want := p.Length().Milliseconds()
		if examples.Lengths[string(p)] != want || !strings.Contains(readingText(t), fmt.Sprintf("| `%s` | %d |", p, want)) {
			t.Errorf("%s windows have a length of %d ms", p, want)
		}
	}
}

// ruledBoards are boards by the rules of the table. Each is there by the week of the schema, by a
// calendar of one's own, and by a season of that week, whose length is another.
func ruledBoards(t *testing.T) []*exampleBoard {
	t.Helper()
	var all []*exampleBoard
	byRule := map[string]*exampleBoard{}
	for i, v := range ruledVectors(t) {
		b := byRule[v.kind+v.rule]
		if b == nil {
			b = &exampleBoard{prefix: fmt.Sprintf("rule-%d", i), period: "weekly", layout: examples.Layout{Kind: v.kind, K: 20, Tick: 618, Max: 99999999}, rule: v.rule}
			byRule[v.kind+v.rule], all = b, append(all, b)
		}
		b.scores, b.want = append(b.scores, v.score), append(b.want, v.row(t, fmt.Sprintf("u%d", i)))
	}
	for _, b := range all {
		own := *b
		own.prefix, own.period, own.of = b.prefix+"-own", "new-york", `{"calendar":"weekly","week":"sunday","zone":"America/New_York"}`
		all = append(all, &own, b.season(t))
	}
	return all
}

// season is the board with the same standings in a season, reached in its last tick but one.
func (b *exampleBoard) season(t *testing.T) *exampleBoard {
	t.Helper()
	rule := parsedRule(t, b.rule)
	l, err := codec.NewTupleLayout(codec.Kind(b.layout.Kind), (weekEnd-weekStart)*time.Millisecond, rule.Fields)
	if err != nil {
		t.Fatal(err)
	}
	s := &exampleBoard{
		prefix: b.prefix + "-season", period: "winter", layout: b.layout, rule: b.rule,
		of: fmt.Sprintf(`{"end":%d,"start":%d}`, weekEnd, weekStart),
	}
	for _, row := range b.want {
		var tuple codec.Tuple
		for i, f := range rule.Fields.List() {
			tuple[i] = row.Fields[f.Name]
		}
		score, err := l.Encode(tuple, 1) // the embedded Redis's Lua can't read a whole score such as 6e+08
		if err != nil {
			t.Fatal(err)
		}
		row.ReachedAt = weekEnd - 2*l.Tick
		s.scores, s.want = append(s.scores, score), append(s.want, row)
	}
	return s
}

func TestTheExamplesOfReadingRedisReadABoardByARule(t *testing.T) {
	client := startRedis(t)
	for _, b := range ruledBoards(t) {
		b.write(t, client)
		b.check(t, client)
	}
}
