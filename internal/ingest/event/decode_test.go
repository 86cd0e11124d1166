package event

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// good decodes a value that must be an event.
func good(t *testing.T, r Rules, value string, recordTime int64) Event {
	t.Helper()
	var ev Event
	if bad := NewDecoder(r).Decode([]byte(value), recordTime, &ev); bad != nil {
		t.Fatalf("%.200s: %v", value, bad)
	}
	return ev
}

// refused decodes a value that must be bad for this reason, and checks its message.
func refused(t *testing.T, r Rules, value string, recordTime int64, want Reason) *Bad {
	t.Helper()
	before := Event{User: []byte("before"), Points: 7}
	ev := before
	bad := NewDecoder(r).Decode([]byte(value), recordTime, &ev)
	if bad == nil {
		t.Fatalf("%.200s: decoded as %+v, want it %s", value, ev, want)
	}
	if bad.Reason != want {
		t.Fatalf("%.200s: %v, want it %s", value, bad, want)
	}
	if string(ev.User) != "before" || ev.Points != 7 || ev.Boards != nil {
		t.Errorf("%.200s: a bad value changed the event: %+v", value, ev)
	}
	checkMessage(t, bad)
	return bad
}

func checkMessage(t *testing.T, bad *Bad) {
	t.Helper()
	if bad.Message == "" || len(bad.Message) > 200 || !utf8.ValidString(bad.Message) {
		t.Errorf("message of %d bytes: %q", len(bad.Message), bad.Message)
	}
	for _, r := range bad.Message {
		if !unicode.IsPrint(r) {
			t.Errorf("message has %U, which can't be printed: %q", r, bad.Message)
		}
	}
}

func names(boards [][]byte) string { return string(bytes.Join(boards, []byte(" "))) }

// with returns an event in which one field has this value and all others are valid.
func with(field, json string) string {
	fields := map[string]string{"user_id": `"u42"`, "points": "25"}
	fields[field] = json
	var b strings.Builder
	b.WriteByte('{')
	for _, name := range []string{"user_id", "points", "board", "occurred_at"} {
		if text, ok := fields[name]; ok {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", name, text)
		}
	}
	b.WriteByte('}')
	return b.String()
}

func TestTheExampleOfTheContractIsAnEvent(t *testing.T) {
	ev := good(t, rules(), string(typical), now)
	if string(ev.User) != "u42" || ev.Points != 25 || ev.Time != now-877 || names(ev.Boards) != "global" {
		t.Errorf("got %+v", ev)
	}
}

func TestOnlyAnObjectOfJSONWithinItsSizeIsWellFormed(t *testing.T) {
	const ok = `{"user_id":"u","points":1}`
	for _, value := range []string{
		"", " ", "\n", "null", "true", "false", "0", `"x"`, "[]", "]", "}", "[" + ok + "]", "{", "{}x", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`,
		`{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`, `{null:1}`, `{'a':1}`, `{"a":[1}`, `{"a":[}]`, `{"a":01}`, `{"a":+1}`,
		`{"a":.5}`, `{"a":1.}`, `{"a":1e}`, `{"a":NaN}`, `{"points":NaN,"user_id":"u"}`, `{"a":Infinity}`, `{"a":nul}`, `{"a":"`, `{"a":"\x"}`, `{"a":"\u12"}`,
		"{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", "\x00" + ok, ok + "\x00",
		ok + ok, ok + " {}", ok + ",", ok + "]", ok + "x", ok + " null", "\ufeff" + ok, "\xff\xfe{\x00}\x00",
		"{\"a\":\"\xff\"}", "{\"\xff\":1}", "{\"user_id\":\"a\xc3\",\"points\":1}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xf4\x90\x80\x80\"}",
		"\xff" + ok, ok + "\xff", "// why\n" + ok,
	} {
		refused(t, rules(), value, now, Malformed)
	}
	for _, value := range []string{
		ok, " \t\r\n" + ok + " \t\r\n", "{\"a\":\"\x7f\u2028\",\"user_id\":\"u\",\"points\":1}",
		`{"\ud800":"\udfff","x":{"a":1,"a":2},"user_id":"u","points":1}`, `{"":[],"user_id":"u","points":1,"z":[1e999999,-0,{"user_id":null}]}`,
	} {
		good(t, rules(), value, now)
	}
}

func TestAMessageSaysWhere(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"", "the value is empty"},
		{"[]", "the value is not an object but a list: each event needs a record of its own"},
		{"\x00\x00\x00\x01\x07{\"user_id\":\"u\",\"points\":1}", "the value is framed by a schema registry (schema 263), and must be JSON alone"},
		{"\x00\x00\x00\x00\x07\x06u42\x32", "the value is framed by a schema registry (schema 7), and must be JSON alone"},
		{"\ufeff{}", "the value begins with a byte order mark, and must begin with its JSON"},
		{"\xff\xfe{\x00}\x00", "the value is UTF-16 by its byte order mark, and must be UTF-8"},
		{"\xfe\xff\x00{\x00}", "the value is UTF-16 by its byte order mark, and must be UTF-8"},
		{"null", "the value is not an object but null"},
		{"not json", "not JSON at byte 1: invalid character 'o' in literal null (expecting 'u')"},
		{"true1", "the value is not an object but a boolean"},
		{"[1", "the JSON ends midway, at byte 2"},
		{`{"user_id":"u","points":1`, "the JSON ends midway, at byte 25"},
		{`{"user_id":"u","points":1} {}`, "there is more after the object, at byte 27"},
		{"{\"user_id\":\"u\xff\"}", "the text is not UTF-8 at byte 13"},
		{`{"user_id" "u"}`, "not JSON at byte 11: invalid character '\"' after object name (expecting ':')"},
		{`{"points":1}`, "user_id is missing"},
		{`{"user_id":null,"points":1}`, "user_id is missing"},
		{`{"user_id":["u"],"points":1}`, `user_id at byte 11 is neither a string nor an integer: ["u"]`},
		{`{"user_id":"u","points":1.5}`, "points at byte 24 is not an integer: 1.5"},
		{`{"user_id":"u","points":"5"}`, `points at byte 24 is a number in quotes: "5"`},
		{`{"user_id":"u","points":"five"}`, `points at byte 24 is not a number: "five"`},
		{`{"user_id":"u","points":1,"board":["eu", "a b"]}`, `board at byte 41 is not a board's name: "a b"`},
		{`{"user_id":"u","points":1,"occurred_at":"now"}`, `occurred_at at byte 40 is not a time by RFC 3339: "now"`},
		{`{"user_id":"u","points":1,"occurred_at":"1795248930000"}`, `occurred_at at byte 40 is not a time by RFC 3339, but a number in quotes: "1795248930000"`},
		{`{"user_id":"u","points":1,"occurred_at":1795248930}`, `occurred_at at byte 40 looks like seconds, and must be milliseconds: 1795248930`},
		{`{"user_id":"u","points":1,"occurred_at":1795248930.123}`, `occurred_at at byte 40 is not a whole number of milliseconds, and looks like seconds: 1795248930.123`},
		{`{"user_id":"u","points":1,"occurred_at":1795248930123456}`, `occurred_at at byte 40 is out of range, and looks like microseconds: 1795248930123456`},
		{`{"user_id":"u","points":1,"occurred_at":1795248930123456789}`, `occurred_at at byte 40 is out of range, and looks like nanoseconds: 1795248930123456789`},
		{`{"user_id":"u","points":1,"occurred_at":1e30}`, `occurred_at at byte 40 is out of range: 1e30`},
		{"{\"user_id\":[\n\"\u202e\u00a0é\"],\"points\":1}", "user_id at byte 11 is neither a string nor an integer: [\\n\"\\u202e\\u00a0é\"]"},
	} {
		var ev Event
		bad := NewDecoder(rules()).Decode([]byte(c.value), now, &ev)
		if bad == nil || bad.Message != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.value, bad, c.want)
		}
	}
	bad := refused(t, rules(), with("user_id", `{"x":"`+strings.Repeat("é", 1000)+`"}`), now, Invalid)
	if _, quoted, _ := strings.Cut(bad.Message, ": "); len(quoted) > 64 || !strings.HasSuffix(quoted, "é…") {
		t.Errorf("shows too much of the value, or half a character: %q", bad.Message)
	}
	if got := bad.String(); got != "invalid: "+bad.Message {
		t.Errorf("in one line: %q", got)
	}
}

func TestAValueMayBeAsLongAsTheLimitAndNotAByteLonger(t *testing.T) {
	const head, tail = `{"user_id":"u","points":1,"x":"`, `"}`
	value := head + strings.Repeat("x", 1<<20-len(head)-len(tail)) + tail
	good(t, rules(), value, now)
	bad := refused(t, rules(), value+" ", now, Malformed)
	if want := "the value has 1048577 bytes, more than the 1048576 allowed"; bad.Message != want {
		t.Errorf("got %q", bad.Message)
	}
}

func TestDeepNestingIsMalformedAndOverflowsNoStack(t *testing.T) {
	nested := func(open, inner, end string, depth int) string {
		return with("x", "1")[:1] + `"x":` + strings.Repeat(open, depth) + inner + strings.Repeat(end, depth) + `,"user_id":"u","points":1}`
	}
	good(t, rules(), nested("[", "", "]", 9_999), now) // the object itself is the first of 10,000 levels
	refused(t, rules(), nested("[", "", "]", 10_000), now, Malformed)
	refused(t, rules(), nested(`{"a":`, "1", "}", 10_000), now, Malformed)
	refused(t, rules(), nested("[", "", "]", 500_000), now, Malformed)
	refused(t, rules(), strings.Repeat("[", 1<<20), now, Malformed)
	refused(t, rules(), strings.Repeat(`{"user_id":`, 90_000), now, Malformed)
}

func TestAUserIsAStringOrAnIntegerAsWritten(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`"u42"`, "u42"}, {`42`, "42"}, {`-7`, "-7"}, {`-0`, "-0"}, {`0`, "0"}, {`9007199254740993`, "9007199254740993"},
		{`123456789012345678901234567890`, "123456789012345678901234567890"},
		{`" "`, " "}, {`"a b"`, "a b"}, {`"\u0000"`, "\x00"}, {`"a\u0000b"`, "a\x00b"}, {`"😀"`, "😀"}, {`"\ud83d\ude00"`, "😀"}, {`"\uD83D\uDE00"`, "😀"},
		{`"\u00e9\n\t\"\\\/\b\f\r"`, "é\n\t\"\\/\b\f\r"}, {`"\ufffd"`, "\ufffd"}, {"\"\ufffd\"", "\ufffd"}, {`"null"`, "null"}, {`"<&>"`, "<&>"},
		{`"` + strings.Repeat("x", 256) + `"`, strings.Repeat("x", 256)},
		{`"` + strings.Repeat("é", 128) + `"`, strings.Repeat("é", 128)},
		{`"` + strings.Repeat(`\u0078`, 256) + `"`, strings.Repeat("x", 256)},
		{`"` + strings.Repeat(`\ud83d\ude00`, 64) + `"`, strings.Repeat("😀", 64)},
		{strings.Repeat("9", 256), strings.Repeat("9", 256)},
	} {
		if got := string(good(t, rules(), with("user_id", c.json), now).User); got != c.want {
			t.Errorf("%s: got %q, want %q", c.json, got, c.want)
		}
	}
	for _, json := range []string{
		`""`, `null`, `true`, `false`, `{}`, `[]`, `["u"]`, `1.0`, `4.5`, `1e3`, `1E3`, `-1.0`,
		`"` + strings.Repeat("x", 257) + `"`, `"` + strings.Repeat("é", 128) + `x"`, `"` + strings.Repeat(`\u0078`, 257) + `"`, `"` + strings.Repeat(`\n`, 300) + `"`,
		strings.Repeat("9", 257), `"` + strings.Repeat("x", 1<<19) + `"`,
		`"\ud800"`, `"a\udc00"`, `"\ud83d\ud83d\ude00"`, `"\ude00\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`,
	} {
		refused(t, rules(), with("user_id", json), now, Invalid)
	}
}

func TestPointsAreAnIntegerByValue(t *testing.T) {
	r := rules()
	r.MaxPoints = math.MaxInt64
	zeros := strings.Repeat("0", 1_000_000)
	for _, c := range []struct {
		json string
		want int64
	}{
		{"25", 25}, {"25.0", 25}, {"1e3", 1000}, {"1E+3", 1000}, {"-0", 0}, {"0.0", 0}, {"100e-2", 1}, {"-25.000", -25}, {"2.5e1", 25}, {"0.25e2", 25}, {"-1.20e1", -12},
		{"9007199254740993", 9007199254740993}, {"9007199254740993.0", 9007199254740993}, {"9223372036854775807", math.MaxInt64}, {"-9223372036854775807", -math.MaxInt64},
		{"9223372036854775807.000", math.MaxInt64}, {"9.223372036854775807e18", math.MaxInt64}, {"9223372036854775807000e-3", math.MaxInt64}, {"1e18", 1e18},
		{"0e999999999", 0}, {"0e-999999999999999999999", 0}, {"-0.000e99", 0}, {"1e0000000000000000000000003", 1000}, {"10203040506070809.0", 10203040506070809},
		{"0." + zeros[:999_999] + "1e1000000", 1}, {"1" + zeros + "e-1000000", 1}, {"1." + zeros, 1}, {"7e" + zeros, 7}, {"7e-" + zeros, 7},
	} {
		if got := good(t, r, with("points", c.json), now).Points; got != c.want {
			t.Errorf("%.40s: got %d, want %d", c.json, got, c.want)
		}
	}
	nines := strings.Repeat("9", 1_000_000)
	for _, json := range []string{
		`"5"`, `"25"`, `""`, `"NaN"`, "null", "true", "[5]", "{}", "1.5", "0.1", "1e-1", "25e-1", "1e400", "-1e400", "1e999999999", "1e-400000000", "1e99999999999999999999", "1e-99999999999999999999",
		"9223372036854775808", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "18446744073709551617", "36893488147419103232", "1e19", "9.3e18", "99999999999999999999",
		nines, "-" + nines, "0." + nines, nines[:500_000] + "." + nines[:500_000], "1e" + nines, "1e-" + nines, "1." + zeros + "1", "0." + zeros + "1",
	} {
		refused(t, r, with("points", json), now, Invalid)
	}
}

func TestBoardsAreANameOrAListOfUpToEight(t *testing.T) {
	longest := strings.Repeat("a", 64)
	for _, c := range []struct{ json, want string }{
		{`null`, "global"}, {`"eu"`, "eu"}, {`"A"`, "A"}, {`"7"`, "7"}, {`"a.b_c-d"`, "a.b_c-d"}, {`"\u0065u"`, "eu"}, {`"` + longest + `"`, longest},
		{`["eu"]`, "eu"}, {` [ "eu" , "us" ] `, "eu us"}, {`["b","a","b","\u0061","c"]`, "b a c"},
		{`["1","2","3","4","5","6","7","8"]`, "1 2 3 4 5 6 7 8"}, {`["1","1","1","1","1","1","1","1"]`, "1"},
		{`["` + strings.Repeat(`\u0061`, 64) + `"]`, longest},
	} {
		if got := names(good(t, rules(), with("board", c.json), now).Boards); got != c.want {
			t.Errorf("%s: got %q, want %q", c.json, got, c.want)
		}
	}
	if got := names(good(t, rules(), `{"user_id":1,"points":1}`, now).Boards); got != "global" {
		t.Errorf("without a board: got %q", got)
	}
	for _, json := range []string{
		`""`, `" eu"`, `"eu "`, `"a b"`, `".a"`, `"-a"`, `"_a"`, `"é"`, `"a\u0000"`, `"a\n"`, `"a:b"`, `"a{0}"`, `"\ud800"`, `"` + longest + `a"`, `"` + strings.Repeat(`\u0061`, 65) + `"`,
		`7`, `true`, `{}`, `{"eu":1}`, `[]`, `[null]`, `[7]`, `["eu",null]`, `["eu",["us"]]`, `["eu",{}]`, `["eu",""]`, `["\udc00"]`,
		`["1","2","3","4","5","6","7","8","9"]`, `["1","1","1","1","1","1","1","1","1"]`, `["1","2","3","4","5","6","7","8",null]`,
		`[` + strings.Repeat(`"eu",`, 100_000) + `"eu"]`, `"` + strings.Repeat("a", 1<<19) + `"`,
	} {
		refused(t, rules(), with("board", json), now, UnknownBoard)
	}
}

func TestOnlyConfiguredBoardsAreKnown(t *testing.T) {
	r := rules()
	r.Boards = []string{"eu", "us"}
	if got := names(good(t, r, with("board", `["us","eu"]`), now).Boards); got != "us eu" {
		t.Errorf("got %q", got)
	}
	for _, json := range []string{`"global"`, `"EU"`, `["eu","asia"]`, `null`} {
		refused(t, r, with("board", json), now, UnknownBoard)
	}
	refused(t, r, `{"user_id":1,"points":1}`, now, UnknownBoard)
	r.Boards = []string{"global"}
	good(t, r, `{"user_id":1,"points":1}`, now)
}

func TestTheLastOfARepeatedFieldCounts(t *testing.T) {
	ev := good(t, rules(), `{"points":"x","user_id":[],"board":7,"occurred_at":"x","board":[],"user\u005fid":"\u0075","\u0070oints":3,"board":"eu","occurred_at":5}`, now)
	if string(ev.User) != "u" || ev.Points != 3 || names(ev.Boards) != "eu" || ev.Time != 5 {
		t.Errorf("got %+v", ev)
	}
	ev = good(t, rules(), `{"user_id":1,"points":1,"board":"eu","board":null,"occurred_at":"x","occurred_at":null}`, now)
	if names(ev.Boards) != "global" || ev.Time != now {
		t.Errorf("a null after it: got %+v", ev)
	}
	refused(t, rules(), `{"user_id":1,"points":1,"points":null}`, now, Invalid)
	refused(t, rules(), `{"user_id":1,"points":1,"points":1.5}`, now, Invalid)
}

func TestNamesAreCaseSensitiveAndUnknownOnesIgnored(t *testing.T) {
	for _, value := range []string{
		`{"User_id":"u","points":1}`, `{"user_id":"u","Points":1}`, `{"user_id ":"u","points":1}`, `{"user_id":"u","points\u0000":1}`, `{"user_id":"u","x":{"points":1}}`,
		`{"user_id":"u","point\ud800":1}`, `{"user_id":"u","` + strings.Repeat(`\u0070`, 1000) + `":1}`,
	} {
		refused(t, rules(), value, now, Invalid)
	}
	ev := good(t, rules(), `{"user_id":"u","points":1,"POINTS":2,"Board":"x","Occurred_At":"x","event_id":[1,{"points":9}]}`, now)
	if ev.Points != 1 || names(ev.Boards) != "global" || ev.Time != now {
		t.Errorf("got %+v", ev)
	}
}

func TestOfSeveralFaultsTheFirstInOrderCounts(t *testing.T) {
	for _, c := range []struct {
		value string
		want  Reason
		about string
	}{
		{`{"occurred_at":"x","board":[],"points":"x","user_id":[]`, Malformed, "the JSON"},
		{`{"occurred_at":"x","board":[],"points":"x","user_id":[]}`, Invalid, "user_id"},
		{`{"occurred_at":"x","board":[],"points":"x","user_id":"u"}`, Invalid, "points"},
		{`{"occurred_at":"x","board":[],"points":1,"user_id":"u"}`, UnknownBoard, "board"},
		{`{"occurred_at":"x","board":["eu"],"points":1,"user_id":"u"}`, BadTime, "occurred_at"},
	} {
		if bad := refused(t, rules(), c.value, now, c.want); !strings.HasPrefix(bad.Message, c.about) {
			t.Errorf("%s: got %q, want it about %s", c.value, bad.Message, c.about)
		}
	}
}
