package event

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mapped returns rules with these paths.
func mapped(t testing.TB, p Paths) Rules {
	t.Helper()
	fields, err := NewFields(p)
	if err != nil {
		t.Fatal(err)
	}
	r := rules()
	r.Fields = fields
	return r
}

var nested = Paths{EventID: "meta.id", UserID: "player.id", Points: "score.delta", Board: "meta.region", OccurredAt: "meta.at"}

func TestFieldsAreReadWhereTheirPathsLead(t *testing.T) {
	for _, c := range []struct {
		what  string
		paths Paths
		value string
	}{
		{"nested", nested, `{"player":{"id":"u42","name":"Ada"},"score":{"delta":25},"meta":{"region":"eu","at":1795248930123}}`},
		{"other names", Paths{UserID: "uid", Points: "xp", Board: "league", OccurredAt: "ts"}, `{"uid":"u42","xp":25,"league":"eu","ts":1795248930123,"user_id":"no","points":1,"board":"us"}`},
		{"swapped", Paths{UserID: "points", Points: "user_id"}, `{"points":"u42","user_id":25,"board":"eu","occurred_at":1795248930123}`},
		{"one path alone", Paths{UserID: "player.id"}, `{"player":{"id":"u42","points":7},"points":25,"board":"eu","occurred_at":1795248930123}`},
		{"a dot in a name", Paths{UserID: `player\.id`, Points: `a\.b.c\\d`}, `{"player":{"id":"no"},"player.id":"u42","a.b":{"c\\d":25},"board":"eu","occurred_at":1795248930123}`},
		{"a backslash that JSON would read otherwise", Paths{UserID: `a\\b`}, `{"a\b":"no","a\\b":"u42","a\b":"no","points":25,"board":"eu","occurred_at":1795248930123}`},
		{"a quote, a control character and beyond ASCII", Paths{UserID: `"x"`, Points: "\n.é"}, `{"\"x\"":"u42","\n":{"é":25},"board":"eu","occurred_at":1795248930123}`},
		{"an escaped name on the way", nested, `{"pl\u0061yer":{"i\u0064":"u42"},"score":{"delta":25},"meta":{"region":"eu","at":1795248930123}}`},
		{"eight names", Paths{UserID: "a.b.c.d.e.f.g.h"}, `{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":"u42"}}}}}}},"points":25,"board":"eu","occurred_at":1795248930123}`},
		{"of a repeated name the last", nested, `{"player":{"id":"x"},"player":{"id":"y","id":"u42"},"score":null,"score":7,"score":{"delta":25},"meta":{"region":"eu"},"meta":{"region":"eu","at":1795248930123}}`},
	} {
		ev := good(t, mapped(t, c.paths), c.value, now)
		if string(ev.User) != "u42" || ev.Points != 25 || ev.Time != now-877 || names(ev.Boards) != "eu" {
			t.Errorf("%s: got %q %d %d %s", c.what, ev.User, ev.Points, ev.Time, names(ev.Boards))
		}
	}
}

func TestWhatIsNotThereByItsPathIsAbsentAndWhatIsNoObjectIsOfTheWrongType(t *testing.T) {
	r := mapped(t, nested)
	rest := `,"score":{"delta":25}}`
	for _, c := range []struct {
		value, message string
		reason         Reason
	}{
		{`{"user_id":"u42"` + rest, "user_id (player.id) is missing", Invalid},
		{`{"player":null` + rest, "user_id (player.id) is missing", Invalid},
		{`{"player":{}` + rest, "user_id (player.id) is missing", Invalid},
		{`{"player":{"id":null}` + rest, "user_id (player.id) is missing", Invalid},
		{`{"player":{"id":"u42"},"player":{"name":"Ada"}` + rest, "user_id (player.id) is missing", Invalid},
		{`{"player":{"id":"u42"},"player":null` + rest, "user_id (player.id) is missing", Invalid},
		{`{"player":"u42"` + rest, `user_id is missing: player at byte 10 is not an object: "u42"`, Invalid},
		{`{"player":[{"id":"u42"}]` + rest, `user_id is missing: player at byte 10 is not an object: [{"id":"u42"}]`, Invalid},
		{`{"player":{"id":"u42"},"player":5` + rest, "user_id is missing: player at byte 32 is not an object: 5", Invalid},
		{`{"player":{"id":""}` + rest, `user_id (player.id) at byte 16 is empty: ""`, Invalid},
		{`{"player":{"id":"u42"},"score":25}`, "points is missing: score at byte 31 is not an object: 25", Invalid},
		{`{"player":{"id":"u42"},"meta":true` + rest, "board is missing: meta at byte 30 is not an object: true", UnknownBoard},
		{`{"player":{"id":"u42"},"meta":{"region":7}` + rest, "board (meta.region) at byte 40 is not a name: 7", UnknownBoard},
		{`{"player":{"id":"u42"},"meta":{"at":{}}` + rest, "occurred_at (meta.at) at byte 36 is neither a time by RFC 3339 nor Unix milliseconds: {}", BadTime},
		{`{"player":{"id":"u42"`, "the JSON ends midway, at byte 21", Malformed},
		{`{"player":{"id":"u42",}` + rest, "not JSON at byte 21: invalid character ',' at start of value", Malformed},
	} {
		if bad := refused(t, r, c.value, now, c.reason); bad.Message != c.message {
			t.Errorf("%s: %q, want %q", c.value, bad.Message, c.message)
		}
	}
	// Only the path of the time is barred.
	r = mapped(t, Paths{OccurredAt: "meta.at"})
	if bad := refused(t, r, `{"user_id":"u","points":1,"meta":0}`, now, BadTime); bad.Message != "occurred_at is missing: meta at byte 33 is not an object: 0" {
		t.Error(bad.Message)
	}
	good(t, r, `{"user_id":"u","points":1,"meta":{}}`, now)
}

func TestPathsThatCannotAllBeReadAreRefused(t *testing.T) {
	for _, c := range []struct {
		paths Paths
		want  string
	}{
		{Paths{UserID: "."}, "user_id has an empty name: join names by dots, as in player.id"},
		{Paths{UserID: "player."}, "user_id has an empty name: join names by dots, as in player.id"},
		{Paths{Points: ".a"}, "points has an empty name: join names by dots, as in player.id"},
		{Paths{Points: "a..b"}, "points has an empty name: join names by dots, as in player.id"},
		{Paths{Board: `a\b`}, `board has an invalid escape: write \. for a dot in a name, \\ for a backslash`},
		{Paths{Board: `a\`}, `board has an invalid escape: write \. for a dot in a name, \\ for a backslash`},
		{Paths{OccurredAt: "a.b.c.d.e.f.g.h.i"}, "occurred_at has 9 names, more than 8"},
		{Paths{OccurredAt: strings.Repeat("x", 257)}, "occurred_at is longer than 256 bytes"},
		{Paths{EventID: "a\xff"}, "event_id is not UTF-8"},
		{Paths{Points: "user_id"}, "points is the path of user_id too: every field needs its own path"},
		{Paths{UserID: "a.b", Points: "a.b"}, "points is the path of user_id too: every field needs its own path"},
		{Paths{UserID: "player.id", Points: "player"}, "points leads to user_id too, so it must be an object and cannot be a value"},
		{Paths{UserID: `p\.q`, Points: `p\.q.delta`}, `points is inside user_id (p\.q), which must be a value and cannot be an object`},
		{Paths{OccurredAt: "board.at"}, "occurred_at is inside board, which must be a value and cannot be an object"},
	} {
		_, err := NewFields(c.paths)
		var wrong *PathError
		if !errors.As(err, &wrong) || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.paths, err, c.want)
		}
	}
	for _, right := range []Paths{{}, {UserID: "a.b", Points: "a.c"}, {UserID: "points", Points: "user_id"}, {UserID: strings.Repeat("x", 256)}, {UserID: `a\.b`, Points: "a.b"}} {
		if _, err := NewFields(right); err != nil {
			t.Errorf("%+v: %v", right, err)
		}
	}
	if err := errors.Join(CheckPath(""), CheckPath("player.id")); err != nil {
		t.Error(err)
	}
	if err := CheckPath("player."); err == nil {
		t.Error("an empty name is taken")
	}
}

func TestTheLongestMessageIsALineOf200Bytes(t *testing.T) {
	long := strings.Repeat("é", 128)
	r := mapped(t, Paths{OccurredAt: long})
	r.MaxEventBytes = 64 << 20
	pad := strings.Repeat("x", 11<<20)
	at := fmt.Sprintf(`{"user_id":"u","points":1,"x":%q,%q:[%q]}`, pad, long, pad)
	refused(t, r, at, now, BadTime)
	h := &Headers{contentType: []byte(structuredType)}
	envelope := fmt.Sprintf(`{"specversion":"1.0","data_base64":%q}`, base64Of(at))
	var ev Event
	bad := NewDecoder(r).DecodeWith(h, []byte(envelope), now, &ev)
	if bad == nil || bad.Reason != BadTime {
		t.Fatal(bad)
	}
	checkMessage(t, bad)
}

// anyPaths generates six paths that can be used together, by field.
func anyPaths() *rapid.Generator[map[string][]string] {
	name := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "id", "user_id", "points", `x.y`, `\`, `"`, "é", "\t"}), rapid.StringN(1, 3, 9))
	return rapid.Custom(func(t *rapid.T) map[string][]string {
		paths := map[string][]string{}
		for _, field := range fieldNames {
			for {
				path := []string{field}
				if rapid.IntRange(0, 3).Draw(t, "own") > 0 {
					path = rapid.SliceOfN(name, 1, 4).Draw(t, "path")
				}
				clashes := false
				for _, other := range paths {
					n := min(len(path), len(other))
					clashes = clashes || slices.Equal(path[:n], other[:n])
				}
				if !clashes {
					paths[field] = path
					break
				}
			}
		}
		return paths
	})
}

func fieldsOf(t interface{ Fatal(...any) }, paths map[string][]string) *Fields {
	text := func(field string) string {
		var names []string
		for _, name := range paths[field] {
			names = append(names, strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(name))
		}
		return strings.Join(names, ".")
	}
	f, err := NewFields(Paths{text("event_id"), text("user_id"), text("points"), text("board"), text("occurred_at"), text("name")})
	if err != nil {
		t.Fatal(err, paths)
	}
	return f
}

// anyMappedObject generates an object with the fields at their paths; some are repeated, missing, odd, or
// behind a value that is not an object.
func anyMappedObject(t *rapid.T, paths map[string][]string) string {
	var object func(depth int, below map[string][]string) string
	object = func(depth int, below map[string][]string) string {
		heads := map[string]map[string][]string{}
		var order []string
		for _, field := range fieldNames {
			path, ok := below[field]
			if !ok {
				continue
			}
			if heads[path[0]] == nil {
				heads[path[0]] = map[string][]string{}
				order = append(order, path[0])
			}
			heads[path[0]][field] = path[1:]
		}
		order = append(order, rapid.SliceOfN(rapid.SampledFrom(append(order, "other")), 0, 2).Draw(t, "more")...)
		var members []string
		for _, name := range rapid.Permutation(order).Draw(t, "order") {
			value := ""
			switch way := rapid.IntRange(0, 29).Draw(t, "way"); {
			case way == 0:
				continue
			case way == 1 || heads[name] == nil:
				value = oddValue().Draw(t, "odd")
			default:
				for field, path := range heads[name] {
					if len(path) == 0 {
						value = plainValue(field).Draw(t, "value")
					}
				}
				if value == "" {
					value = object(depth+1, heads[name])
				}
			}
			members = append(members, quoted(t, name)+":"+value)
		}
		return "{" + strings.Join(members, rapid.SampledFrom([]string{",", " ,\n"}).Draw(t, "comma")) + "}"
	}
	return object(0, paths)
}

func TestAMappedEventIsWhatAnOracleMakesOfIt(t *testing.T) {
	seen := map[Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		paths := anyPaths().Draw(t, "paths")
		r := rules()
		r.Fields = fieldsOf(t, paths)
		d := NewDecoder(r)
		for range 50 { // a short run meets each reason too: the rarest is one in 40
			value := []byte(anyMappedObject(t, paths))
			seen[agreeOn(t, d, paths, record{value: value, time: now})]++
		}
	})
	for _, reason := range []Reason{"", Malformed, Invalid, UnknownBoard, BadTime} {
		if seen[reason] == 0 {
			t.Errorf("the generator never made an event with reason %q: %v", reason, seen)
		}
	}
}

// agreeOn checks that decoder and oracle have the same result for a record.
func agreeOn(t interface {
	Helper()
	Fatalf(string, ...any)
}, d *Decoder, paths map[string][]string, rec record) Reason {
	t.Helper()
	want, wantID, reason := oracleOf(d.rules, paths, rec)
	value := bytes.Clone(rec.value)
	var ev Event
	bad := d.DecodeWith(rec.taken(), rec.value, rec.time, &ev)
	id := string(d.ID())
	switch {
	case !bytes.Equal(value, rec.value):
		t.Fatalf("%q: the value was written to", value)
	case bad != nil && bad.Reason != reason:
		t.Fatalf("%q %q %v: %v, want %q %+v", rec.headers, value, paths, bad, reason, want)
	case bad != nil && len(bad.Message) > 200:
		t.Fatalf("%q: a message of %d bytes", value, len(bad.Message))
	case bad == nil && reason != "":
		t.Fatalf("%q %q %v: good, want it %s", rec.headers, value, paths, reason)
	case id != wantID:
		t.Fatalf("%q %q %v: the id is %q, want %q", rec.headers, value, paths, id, wantID)
	case bad == nil && (!bytes.Equal(ev.User, want.User) || ev.Points != want.Points || ev.Time != want.Time || names(ev.Boards) != names(want.Boards)):
		t.Fatalf("%q %q %v:\n got %q %d %d %s\nwant %q %d %d %s", rec.headers, value, paths,
			ev.User, ev.Points, ev.Time, names(ev.Boards), want.User, want.Points, want.Time, names(want.Boards))
	}
	return reason
}

// FuzzMapped compares decoder and oracle on fuzzed values whose fields are inside objects.
func FuzzMapped(f *testing.F) {
	f.Add([]byte(`{"player":{"id":"u42"},"score":{"delta":25},"meta":{"region":"eu","at":1795248930123,"id":"e1"}}`), int64(now))
	f.Add([]byte(`{"player":{"id":"u42"},"player":7,"score":{"delta":25,"delta":26},"meta":null}`), int64(now))
	paths := map[string][]string{
		"event_id": {"meta", "id"}, "user_id": {"player", "id"}, "points": {"score", "delta"}, "board": {"meta", "region"}, "occurred_at": {"meta", "at"},
	}
	f.Fuzz(func(t *testing.T, value []byte, recordTime int64) {
		agreeOn(t, NewDecoder(mapped(t, nested)), paths, record{value: value, time: recordTime})
	})
}
