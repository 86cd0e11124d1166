package main

import (
	"strings"
	"testing"
)

func TestALineThatCanNotBePublishedSaysWhy(t *testing.T) {
	const from = `{"dead_letter":{"topic":"points","partition":3,"offset":480}`
	for line, want := range map[string]string{
		from + `}`:                                               "line 1 is a dead letter that can't be published: it has no value; the original stands at points/3@480",
		from + `,"value":null}`:                                  "it has no value",
		from + `,"value":5}`:                                     "value isn't an object of JSON; other text is value_text",
		from + `,"value":{},"value_text":""}`:                    "it has both value and value_text: leave one of them",
		from + `,"value_base64":"?"}`:                            "its value_base64 isn't base64 of a value",
		from + `,"value_text":"{"}`:                              "line 1: the value of points/3@480 isn't mended, it is no JSON object (--raw publishes it all the same)",
		from + `,"value":{},"user_id":"u1"}`:                     `a dead letter has no "user_id"; what an event has goes into its value`,
		from + `,"value":{},"time":"today"}`:                     `time "today" isn't one such as`,
		from + `,"value":{},"time":5}`:                           "time 5 isn't one such as",
		from + `,"value":{},"key":5}`:                            "its key isn't a text",
		from + `,"value":{},"headers":{}}`:                       "headers isn't a list",
		from + `,"value":{},"headers":[{}]}`:                     "header 1: it has no key",
		from + `,"value":{}`:                                     "line 1 was a dead letter and isn't JSON any more",
		`{"dead_letter":5}`:                                      "dead_letter isn't an object",
		`{"dead_letter":{}}`:                                     "dead_letter has no topic",
		`{"dead_letter":{"topic":"p"}}`:                          "dead_letter has no ",
		strings.Replace(from, "points", "p", 1) + `,"value":{}}`: "line 1 is a dead letter of p, and this publishes to points: export and publish a topic at a time",
	} {
		_, err := newLines(strings.NewReader(line), "points", false).next()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", line, err, want)
		}
	}
	// An event may have any field, in objects too.
	for _, line := range []string{`{"user_id":"u1","more":{"dead_letter":{"topic":"points"}}}`, `{"user_id":"dead_letter"}`, `{"user_id":"u1","a":"\"dead_letter\""}`} {
		if o, err := newLines(strings.NewReader(line), "points", false).next(); err != nil || o.letter || string(o.value) != line {
			t.Errorf("%s: %+v, %v", line, o, err)
		}
	}
	// Mended to an object, text is one.
	if o, err := newLines(strings.NewReader(from+`,"value_text":"{\"points\":1}"}`), "points", false).next(); err != nil || string(o.value) != `{"points":1}` {
		t.Errorf("%s, %v", o.value, err)
	}
	if o, err := newLines(strings.NewReader(from+`,"value_text":"{"}`), "points", true).next(); err != nil || string(o.value) != `{` {
		t.Errorf("raw: %s, %v", o.value, err)
	}
}
