package main

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
	got, err := readAll(newLines(strings.NewReader(text), "points", false))
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

func TestALineThatIsNoObjectIsRefusedByItsNumberUnlessRaw(t *testing.T) {
	for _, line := range []string{`[1]`, `"a"`, `5`, `null`, `{`, `{"user_id":"a"`, `{"user_id":"a"}}`, `{"user_id":"a"} {}`,
		`{"user_id":"a",}`, "{\"user_id\":\"\xff\"}", `points`, `{"user_id":"a" "points":1}`, "\ufeff{}"} {
		text := "{}\n\n" + line + "\n{}"
		if got, err := readAll(newLines(strings.NewReader(text), "points", false)); len(got) != 1 || err == nil || !strings.Contains(err.Error(), "line 3 isn't a JSON object") {
			t.Errorf("%s: %v, %v", line, got, err)
		}
		if got, err := readAll(newLines(strings.NewReader(text), "points", true)); len(got) != 3 || !errors.Is(err, io.EOF) || got[1] != [2]string{"no key", line} {
			t.Errorf("raw %s: %v, %v", line, got, err)
		}
	}
}

func TestAFileThatCanNotBeReadSaysAfterWhichLine(t *testing.T) {
	broken := errors.New("the disk is on fire")
	r := io.MultiReader(strings.NewReader("{}\n{}\nhalf a li"), iotest.ErrReader(broken))
	if got, err := readAll(newLines(r, "points", true)); len(got) != 2 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "after line 2") {
		t.Errorf("got %v, %v", got, err)
	}
	long := strings.NewReader("{}\n" + strings.Repeat(" ", lineBytes+1))
	if got, err := readAll(newLines(long, "points", false)); len(got) != 1 || err == nil || !strings.Contains(err.Error(), "line 2 is longer than 64MiB") {
		t.Errorf("got %v, %v", got, err)
	}
}

// What is taken as an object is one to encoding/json as well, with the same
// user_id.
func FuzzLinesAgreeWithEncodingJSON(f *testing.F) {
	for _, line := range []string{`{}`, `{"user_id":"a"}`, `{"user_id":-1e3}`, `{"user_id":"\ud83d\ude00","user_id":""}`, `{"a":{"user_id":1}}`, `{"user_id":`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		l := newLines(strings.NewReader(""), "points", false)
		key, err := l.user([]byte(line))
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
