package produce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads a source to its end or first error.
func readAll(src source) (records [][2]string, err error) {
	for {
		o, err := src.next()
		if err != nil {
			return records, err
		}
		k := "no key"
		if o.key != nil {
			k = string(o.key)
		}
		records = append(records, [2]string{k, string(o.value)})
	}
}

func TestALineIsARecordAndItsUserTheKey(t *testing.T) {
	text := ` {"user_id":"a\u0062","points":1} ` + "\r\n\n  \t\n" +
		`{"points":2,"user_id":42}` + "\n" +
		`{"user_id":"first","nested":{"user_id":"other"},"user_id":"last"}` + "\n" +
		`{"USER_ID":"a","points":1}` + "\n" +
		`{"user_id":null}` + "\n{}"
	got, err := readAll(newLines(strings.NewReader(text), "points"))
	want := [][2]string{
		{"ab", ` {"user_id":"a\u0062","points":1} `},
		{"42", `{"points":2,"user_id":42}`},
		{"last", `{"user_id":"first","nested":{"user_id":"other"},"user_id":"last"}`},
		{"no key", `{"USER_ID":"a","points":1}`},
		{"no key", `{"user_id":null}`},
		{"no key", `{}`},
	}
	if !errors.Is(err, io.EOF) || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestALineThatIsNoObjectIsRefusedByItsNumber(t *testing.T) {
	for _, line := range []string{`[1]`, `"a"`, `5`, `null`, `{`, `{"user_id":"a"`, `{"user_id":"a"}}`, `{"user_id":"a"} {}`,
		`{"user_id":"a",}`, "{\"user_id\":\"\xff\"}", `points`, `{"user_id":"a" "points":1}`, "\ufeff{}"} {
		text := "{}\n\n" + line + "\n{}"
		if got, err := readAll(newLines(strings.NewReader(text), "points")); len(got) != 1 || err == nil || !strings.Contains(err.Error(), "line 3 is not a JSON object") {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
}

func TestAFileThatCanNotBeReadSaysAfterWhichLine(t *testing.T) {
	broken := errors.New("the disk is on fire")
	r := io.MultiReader(strings.NewReader("{}\n{}\nhalf a li"), iotest.ErrReader(broken))
	if got, err := readAll(newLines(r, "points")); len(got) != 2 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "after line 2") {
		t.Errorf("got %v, %v", got, err)
	}
	long := strings.NewReader("{}\n" + strings.Repeat(" ", lineBytes+1))
	if got, err := readAll(newLines(long, "points")); len(got) != 1 || err == nil || !strings.Contains(err.Error(), "line 2 is longer than 64MiB") {
		t.Errorf("got %v, %v", got, err)
	}
}

// Every line that is accepted as an object is one for encoding/json, too, with the same user_id.
func FuzzLinesAgreeWithEncodingJSON(f *testing.F) {
	for _, line := range []string{`{}`, `{"user_id":"a"}`, `{"user_id":-1e3}`, `{"user_id":"\ud83d\ude00","user_id":""}`, `{"a":{"user_id":1}}`, `{"user_id":`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, err := userOf([]byte(line))
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q isn't an object to encoding/json: %v", line, err)
		}
		raw := strings.TrimSpace(string(fields["user_id"]))
		var want string
		switch {
		case strings.HasPrefix(raw, `"`):
			if err := json.Unmarshal([]byte(raw), &want); err != nil {
				t.Fatal(err)
			}
		case raw != "" && strings.ContainsAny(raw[:1], "-0123456789"):
			want = raw
		default:
			if key != nil {
				t.Fatalf("%q has key %q", line, key)
			}
		}
		if string(key) != want {
			t.Fatalf("%q has key %q, want %q", line, key, want)
		}
	})
}

func TestALineThatCanNotBePublishedSaysWhy(t *testing.T) {
	const from = `{"dead_letter":{"topic":"points","partition":3,"offset":480}`
	for line, want := range map[string]string{
		from + `}`:                                               "line 1 is a dead letter that cannot be published: it has no value; the original is at points/3@480",
		from + `,"value":null}`:                                  "it has no value",
		from + `,"value":5}`:                                     "value must be a JSON object; use value_text for other text",
		from + `,"value":{},"value_text":""}`:                    "it has both value and value_text or value_base64: leave one of them",
		from + `,"value_base64":"?"}`:                            "value_base64: illegal base64 data",
		from + `,"value_text":"{"}`:                              "line 1: the value of points/3@480 is still not a JSON object",
		from + `,"value":{},"user_id":"u1"}`:                     `a dead letter has no field "user_id"; an event's fields belong in its value`,
		from + `,"value":{},"time":"today"}`:                     `time "today" must be a time such as`,
		from + `,"value":{},"time":5}`:                           "time 5 must be a time such as",
		from + `,"value":{},"key":5}`:                            "key: wrong JSON type",
		from + `,"value":{},"headers":{}}`:                       "headers: wrong JSON type",
		from + `,"value":{},"headers":[{}]}`:                     "header 1: it has no key",
		from + `,"value":{}`:                                     "line 1 was a dead letter but is not valid JSON",
		`{"dead_letter":5}`:                                      "dead_letter: wrong JSON type",
		`{"dead_letter":{}}`:                                     "dead_letter has no topic",
		`{"dead_letter":{"topic":"p"}}`:                          "dead_letter has no ",
		strings.Replace(from, "points", "p", 1) + `,"value":{}}`: "line 1 is a dead letter of p, and this publishes to points: export and publish a topic at a time",
	} {
		_, err := newLines(strings.NewReader(line), "points").next()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", line, err, want)
		}
	}
	// An event may have any field, also in nested objects.
	for _, line := range []string{`{"user_id":"u1","more":{"dead_letter":{"topic":"points"}}}`, `{"user_id":"dead_letter"}`, `{"user_id":"u1","a":"\"dead_letter\""}`} {
		if o, err := newLines(strings.NewReader(line), "points").next(); err != nil || o.headers != nil || string(o.value) != line {
			t.Errorf("%s: %+v, %v", line, o, err)
		}
	}
	// Text that was fixed to be a JSON object is accepted.
	if o, err := newLines(strings.NewReader(from+`,"value_text":"{\"points\":1}"}`), "points").next(); err != nil || string(o.value) != `{"points":1}` {
		t.Errorf("%s, %v", o.value, err)
	}
}
