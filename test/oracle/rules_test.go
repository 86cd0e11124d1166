package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// ruled is a configuration with boards by rules of their own.
func ruled() Config {
	c := defaults()
	c.Rules = map[string]Board{
		"global": {},
		"arena":  {Score: "best", Fields: []Field{{Name: "stage", Max: 999}, {Name: "revives", Max: 99, Fewest: true}}, Periods: []string{"weekly"}},
		"ladder": {Fields: []Field{{Name: "levels", Max: 999}, {Name: "experience", Max: 99_999}}, Periods: []string{"weekly"}},
		"mood":   {Score: "last", Fields: []Field{{Name: "elo", Max: 4000, Signed: true}}, Periods: []string{"weekly"}},
		"lap":    {Score: "best", Fields: []Field{{Name: "lap_ms", Max: 600_000, Fewest: true}}, Periods: []string{"cup"}},
	}
	c.Boards = []string{"global", "arena", "ladder", "mood", "lap"}
	start := int64(week + 1000*60*60)
	c.Periods = append(c.Periods, Period{Name: "cup", Layout: "wide", Retention: 24 * time.Hour, Start: start, End: start + 1000*60*60})
	return c
}

// week is the start of 2026-W47 in UTC, Unix ms.
const week = 1_794_787_200_000

// Each row's events are counted in their order and in the other one.
func TestAStandingIsAFunctionOfItsBoardsRuleAndTheSetOfEvents(t *testing.T) {
	for _, c := range []struct {
		board  string
		events []string // the fields, and ms after the week's start
		values tuple
		at     int64 // ms after the week's start
	}{
		{"arena", []string{`"stage":42,"revives":3 @500`, `"stage":41,"revives":0 @100`}, tuple{42, 3}, 500},
		{"arena", []string{`"stage":42,"revives":3 @500`, `"stage":42,"revives":2 @700`}, tuple{42, 2}, 700},
		{"arena", []string{`"stage":42,"revives":2 @500`, `"stage":42,"revives":2 @300`}, tuple{42, 2}, 300},
		{"arena", []string{`"stage":0,"revives":99 @500`}, tuple{0, 99}, 500},
		{"ladder", []string{`"levels":1,"experience":-3 @500`, `"levels":-1,"experience":90 @700`, `"levels":0,"experience":5 @600`}, tuple{0, 92}, 600},
		{"ladder", []string{`"levels":0,"experience":0 @500`}, tuple{0, 0}, 0},
		{"mood", []string{`"elo":-7 @500`, `"elo":9 @100`}, tuple{-7}, 500},
		{"mood", []string{`"elo":5 @100`, `"elo":9 @101`, `"elo":7 @102`}, tuple{7}, 102},
	} {
		for _, reversed := range []bool{false, true} {
			o := New(ruled())
			for i := range c.events {
				e := c.events[i]
				if reversed {
					e = c.events[len(c.events)-1-i]
				}
				fields, at, _ := strings.Cut(e, " @")
				ms := int64(0)
				_, _ = fmt.Sscan(at, &ms)
				value := fmt.Sprintf(`{"user_id":"u","board":%q,%s,"occurred_at":%d}`, c.board, fields, week+ms)
				if reason := o.Add(Record{Offset: int64(i), Time: week + 1000, Value: []byte(value)}); reason != "" {
					t.Fatalf("%s: %s", value, reason)
				}
			}
			for b, set := range o.boards {
				if s := set.members["u"]; s.values != c.values || b.name != c.board || s.timed && s.time != week+c.at || !s.timed && c.at != 0 {
					t.Errorf("%s %v: %+v in %s, want %v at %d", c.board, c.events, *s, b.window.name, c.values, week+c.at)
				}
			}
		}
	}
}

// With ticks of more than a millisecond, an event that is later by less isn't the last.
func TestOfEventsWithinATickTheGreatestIsTheLast(t *testing.T) {
	c := ruled()
	c.Rules["mood"] = Board{Score: "last", Fields: []Field{{Name: "elo", Max: 99_999_999}}, Periods: []string{"weekly"}}
	o := New(c)
	for i, e := range []string{`"elo":5,"occurred_at":1794787200019`, `"elo":9,"occurred_at":1794787200010`, `"elo":7,"occurred_at":1794787200009`} {
		if reason := o.Add(Record{Offset: int64(i), Time: week, Value: []byte(`{"user_id":"u","board":"mood",` + e + `}`)}); reason != "" {
			t.Fatal(e, reason)
		}
	}
	for b, set := range o.boards {
		if s := set.members["u"]; s.values != (tuple{9}) || set.layout.tick != 10 || b.window.start != week {
			t.Errorf("%+v by ticks of %d ms", *s, set.layout.tick)
		}
	}
}

func TestARulesEventsAreJudgedByEachBoardsFieldsAndWindows(t *testing.T) {
	hour := int64(1000 * 60 * 60)
	for _, c := range []struct {
		value  string
		at     int64
		reason string
		counts Counts
	}{
		{`"board":"arena","stage":42,"revives":3,"points":"many"`, 0, "", Counts{Applied: 1}},
		{`"board":["global","arena"],"stage":42,"revives":3`, 0, Invalid, Counts{}},
		{`"board":["global","arena"],"stage":42,"points":3`, 0, Invalid, Counts{}},
		{`"board":"arena","stage":42,"revives":-1`, 0, Invalid, Counts{}},
		{`"board":"arena","stage":1000,"revives":1`, 0, Invalid, Counts{}},
		{`"board":"ladder","levels":-999,"experience":0`, 0, "", Counts{Applied: 1}},
		{`"board":"ladder","levels":1.5,"experience":0`, 0, Invalid, Counts{}},
		{`"board":"nowhere","points":"many"`, 0, UnknownBoard, Counts{}},
		{`"board":"lap","lap_ms":1`, hour - 1, "", Counts{Early: 1}},
		{`"board":"lap","lap_ms":1`, hour, "", Counts{Applied: 1}},
		{`"board":"lap","lap_ms":1`, 2*hour - 1, "", Counts{Applied: 1}},
		{`"board":"lap","lap_ms":1`, 2 * hour, "", Counts{Late: 1}},
		{`"board":["lap","arena"],"lap_ms":1,"stage":1,"revives":1`, 0, "", Counts{Applied: 1}},
	} {
		o := New(ruled())
		value := `{"user_id":"u",` + c.value + fmt.Sprintf(`,"occurred_at":%d}`, week+c.at)
		reason := o.Add(Record{Time: week + c.at, Value: []byte(value)})
		n := o.Counts()
		if reason != c.reason || n.Applied != c.counts.Applied || n.Early != c.counts.Early || n.Late != c.counts.Late {
			t.Errorf("%s: %q %+v, want %q %+v", value, reason, n, c.reason, c.counts)
		}
	}
}

// The golden vectors of tuples come from exact arithmetic, too, though not from this package.
func TestScoresOfTuplesAreTheGoldenOnes(t *testing.T) {
	text, err := os.ReadFile("../../internal/codec/testdata/tuples.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Layouts []struct {
			Kind     string
			LengthMS int64 `json:"length_ms"`
			Fields   []Field
			Max, K   int64
			Tick     int64
			Scores   []struct {
				Tuple  []int64
				Ticks  int64
				Packed int64
				Bits   string
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, g := range file.Layouts {
		b := Board{Score: "best", Fields: g.Fields}
		l := Config{}.layoutOf(Period{Layout: g.Kind, Every: g.LengthMS}, b)
		if int64(l.k) != g.K || l.tick != g.Tick || l.most.Int64() != g.Max {
			t.Errorf("%s %s: k %d, tick %d, up to %v; want %d, %d, %d", g.Kind, b.text(), l.k, l.tick, l.most, g.K, g.Tick, g.Max)
		}
		w := &window{end: g.LengthMS}
		for _, v := range g.Scores {
			s := &standing{time: g.LengthMS - 1 - v.Ticks*g.Tick, timed: true}
			if s.time < 0 {
				continue // ticks that no window of this length has
			}
			copy(s.values[:], v.Tuple)
			bits, err := l.score(w, s)
			if text := fmt.Sprintf("%016x", bits); err != nil || text != v.Bits {
				t.Errorf("%s %s: %v with %d ticks is %s, %v; want %s", g.Kind, b.text(), v.Tuple, v.Ticks, text, err, v.Bits)
			}
			compared++
		}
	}
	if compared < 500 {
		t.Errorf("only %d scores were compared", compared)
	}
}

func TestTheListingNamesARule(t *testing.T) {
	c := ruled()
	for name, want := range map[string]string{
		"arena": "best(stage:999,revives:99:fewest)", "mood": "last(elo:4000:signed)", "global": "sum(points:99999999:signed)",
	} {
		if got := c.rule(name).text(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if !c.byDefault(c.rule("global")) || c.byDefault(c.rule("mood")) {
		t.Error("which board is by the default rule?")
	}
}
