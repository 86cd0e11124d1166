package rules

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
)

const hour = int64(time.Hour / time.Millisecond)

func someSet(t testing.TB) Set {
	t.Helper()
	weekly, err := periods.ByCalendar("weekly", periods.Weekly, periods.Calendar{})
	require.NoError(t, err)
	season, err := periods.Season("season-4", 1_796_083_200_000, 1_803_859_200_000)
	require.NoError(t, err)
	points, err := Default(99_999_999)
	require.NoError(t, err)
	return Set{
		Boards: map[string]Board{
			AnyBoard: {points, []periods.Period{"weekly"}},
			"arena":  {mustRule(t, Best, arena...), []periods.Period{"weekly", "season-4"}},
		},
		Periods:       map[periods.Period]Period{"weekly": {weekly, 24 * hour}, "season-4": {season, 0}},
		Fields:        map[string]string{"user_id": "player.id"},
		MaxEventBytes: 1 << 20, MaxFuture: 300_000,
	}
}

// The text is stored in Redis, and a sweep's position has its fingerprint: a new version of the program
// must not change either.
func TestASetHasOneText(t *testing.T) {
	s := someSet(t)
	const want = `{"boards":{"*":{"fields":[{"max":99999999,"name":"points","signed":true}],"periods":["weekly"],"score":"sum"},` +
		`"arena":{"fields":[{"max":999,"name":"stage"},{"fewest":true,"max":99,"name":"revives"}],"periods":["weekly","season-4"],"score":"best"}},` +
		`"duplicates":0,"fields":{"user_id":"player.id"},"max_event_bytes":1048576,"max_future_ms":300000,` +
		`"periods":{"season-4":{"lateness_ms":0,"of":{"start":1796083200000,"end":1803859200000}},` +
		`"weekly":{"lateness_ms":86400000,"of":{"calendar":"weekly","zone":"UTC","week":"monday"}}},"v":1}`
	if got := s.Text(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Fingerprint(s.Text()); len(got) != 16 || got != Fingerprint(want) {
		t.Errorf("%s", got)
	}
}

// sets draws a set with periods of all kinds and boards with all rules.
func sets() *rapid.Generator[Set] {
	return rapid.Custom(func(t *rapid.T) Set {
		s := Set{
			Boards: map[string]Board{}, Periods: map[periods.Period]Period{}, Fields: map[string]string{},
			MaxEventBytes: near(1, 1<<30).Draw(t, "bytes"), MaxFuture: near(0, 1<<40).Draw(t, "future"), Duplicates: near(0, 1<<30).Draw(t, "duplicates"),
		}
		names := []periods.Period{}
		for i := range rapid.IntRange(0, 4).Draw(t, "periods") {
			name := periods.Period(fmt.Sprint("p", i))
			parts := rapid.SampledFrom([]periods.Parts{
				{Calendar: periods.Weekly, Zone: "Europe/Berlin", WeekStart: "sunday"}, {Calendar: periods.AllTime, Zone: "UTC", WeekStart: "monday"},
				{Start: 0, End: 1000}, {Start: 1_796_083_200_000, End: 1_803_859_200_000},
				{Every: 72 * hour}, {Every: 61_000, From: 7000},
			}).Draw(t, "parts")
			rule, err := periods.Of(name, parts)
			if err != nil || rule.Parts() != parts {
				t.Fatalf("%+v became %+v, %v", parts, rule.Parts(), err)
			}
			s.Periods[name] = Period{rule, near(0, 1<<40).Draw(t, "lateness")}
			names = append(names, name)
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{AnyBoard, "global", "eu", "a.b-c_d"}), 0, 4, rapid.ID).Draw(t, "boards") {
			of := []periods.Period{}
			for _, p := range names {
				if rapid.Bool().Draw(t, "has it") {
					of = append(of, p)
				}
			}
			s.Boards[name] = Board{rulesOf(Scores()...).Draw(t, "rule"), of}
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"user_id", "points", "lap"}), 0, 3, rapid.ID).Draw(t, "fields") {
			s.Fields[name] = rapid.String().Draw(t, "path")
		}
		return s
	})
}

func TestASetComesBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sets().Draw(t, "set")
		for name, path := range s.Fields {
			s.Fields[name] = strings.ToValidUTF8(path, "")
		}
		back, err := Parse(s.Text())
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%s came back as %s, %v", s.Text(), back.Text(), err)
		}
	})
}

func TestSetsThatDifferHaveOtherTexts(t *testing.T) {
	first := someSet(t)
	seen := map[string]string{Fingerprint(first.Text()): "first"}
	for what, change := range map[string]func(*Set){
		"a board more":  func(s *Set) { s.Boards["eu"] = s.Boards[AnyBoard] },
		"a board less":  func(s *Set) { delete(s.Boards, AnyBoard) },
		"another score": func(s *Set) { b := s.Boards["arena"]; b.Rule = mustRule(t, Last, arena...); s.Boards["arena"] = b },
		"another order": func(s *Set) {
			s.Boards["arena"] = Board{mustRule(t, Best, arena[1], arena[0]), s.Boards["arena"].Periods}
		},
		"another max": func(s *Set) {
			s.Boards[AnyBoard] = Board{mustRule(t, Sum, codec.Field{Name: "points", Max: 9, Signed: true}), []periods.Period{"weekly"}}
		},
		"no corrections": func(s *Set) {
			s.Boards[AnyBoard] = Board{mustRule(t, Sum, codec.Field{Name: "points", Max: 99_999_999}), []periods.Period{"weekly"}}
		},
		"fewest": func(s *Set) {
			s.Boards[AnyBoard] = Board{mustRule(t, Sum, codec.Field{Name: "points", Max: 99_999_999, Signed: true, Fewest: true}), []periods.Period{"weekly"}}
		},
		"a period less":       func(s *Set) { b := s.Boards["arena"]; b.Periods = b.Periods[:1]; s.Boards["arena"] = b },
		"another lateness":    func(s *Set) { p := s.Periods["weekly"]; p.Lateness++; s.Periods["weekly"] = p },
		"another path":        func(s *Set) { s.Fields["user_id"] = "id" },
		"another bytes":       func(s *Set) { s.MaxEventBytes++ },
		"another future":      func(s *Set) { s.MaxFuture++ },
		"duplicates":          func(s *Set) { s.Duplicates = 1 },
		"no field's own path": func(s *Set) { s.Fields = nil },
	} {
		s := someSet(t)
		change(&s)
		if other, ok := seen[Fingerprint(s.Text())]; ok {
			t.Errorf("%s has the fingerprint of %s: %s", what, other, s.Text())
		}
		seen[Fingerprint(s.Text())] = what
	}
}

func TestATextThatNoProgramOfThisVersionWroteIsRefused(t *testing.T) {
	first := someSet(t)
	text := first.Text()
	for old, c := range map[string]struct{ now, says string }{
		`"v":1`:                 {`"v":2`, "version 2: this program reads version 1"},
		`"duplicates":0`:        {`"duplicate":0`, "unknown field"},
		`"score":"sum"`:         {`"score":"mean"`, "must be one of sum, best, last"},
		`"max":999,`:            {`"max":0,`, "must be at least 1"},
		`"max":99999999,`:       {`"max":9.9,`, "cannot unmarshal"},
		`"periods":["weekly"]`:  {`"periods":["daily"]`, `unknown period "daily"`},
		`"end":1803859200000`:   {`"end":1`, "start and end must be whole seconds"},
		`"zone":"UTC"`:          {`"zone":"Mars"`, "is not an IANA name"},
		`"week":"monday"}`:      {`"week":"monday","every":5}`, "must be a calendar, a season or windows of equal length"},
		`{"boards"`:             {` {"boards"`, "not in canonical form"},
		`"max_event_bytes":`:    {`"max_event_bytes": `, "not in canonical form"},
		`"v":1}`:                {`"v":1}{}`, "unexpected data after the rules"},
		`"fields":{"user_id":"`: {`"fields":{"user_id":"` + "\xff", "not in canonical form"},
		text:                    {"", "EOF"},
	} {
		changed := strings.Replace(text, old, c.now, 1)
		if s, err := Parse(changed); err == nil || !strings.Contains(err.Error(), c.says) || !reflect.DeepEqual(s, Set{}) {
			t.Errorf("%s in place of %s: %v; want it to say %q", c.now, old, err, c.says)
		}
	}
}

// FuzzParse parses arbitrary texts: an accepted text is written again unchanged.
func FuzzParse(f *testing.F) {
	s := someSet(f)
	f.Add(s.Text())
	f.Add(`{"boards":{},"duplicates":0,"fields":{},"max_event_bytes":0,"max_future_ms":0,"periods":{},"v":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err == nil && s.Text() != text || err != nil && !reflect.DeepEqual(s, Set{}) {
			t.Errorf("%q is %q, %v", text, s.Text(), err)
		}
	})
}
