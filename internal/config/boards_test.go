package config

import (
	"strings"
	"testing"
)

// Each says which board and field, what was wrong, and what would be right.
func TestWhatIsWrongWithABoardIsNamed(t *testing.T) {
	field := func(settings string) string { return "a: {fields: [{name: x, " + settings + "}]}" }
	for _, c := range []struct{ boards, says string }{
		{"a: 5", "board a: what stands there is no section: {} is a board by the default rule"},
		{"a: [x]", "board a: what stands there is no section: {}"},
		{"'a b': {}", "has a board \"a b\": a name is 1 to 64 letters, digits, `.`, `_` or `-`, the first a letter or digit, or \"*\" for"},
		{"a: {scores: best}", `board a: there is no "scores"; the nearest is score`},
		{"a: {score: most}", `board a: score "most" isn't one of sum, best, last`},
		{"a: {score: [best]}", `board a: score "[best]" isn't one of sum, best, last`},
		{"a: {periods: weekly}", "board a: periods isn't a list of names such as [weekly]; leave it out for all that are enabled"},
		{"a: {periods: []}", "board a: periods isn't a list of names such as [weekly]"},
		{"a: {periods: [{weekly: x}]}", "board a: periods isn't a list of names such as [weekly]"},
		{"a: {periods: [weekly, weekly]}", `board a: periods names "weekly" twice: once is enough`},
		{"a: {periods: [daily]}", `board a: periods names "daily", which isn't enabled: set periods.daily.enabled, or leave it out`},
		{"a: {periods: [wekly]}", `board a: periods names "wekly", which isn't enabled: there is none of that name, and the nearest is weekly`},
		{"a: {fields: stage}", "board a: fields isn't a list of 1 to 5 such as [{name: stage, max: 999}]"},
		{"a: {fields: []}", "board a: fields isn't a list of 1 to 5 such as"},
		{"a: {fields: {name: x, max: 5}}", "board a: fields isn't a list of 1 to 5 such as"},
		{"a: {fields: [" + strings.Repeat("{name: x, max: 5},", 6) + "]}", "board a: fields isn't a list of 1 to 5 such as"},
		{"a: {fields: [stage]}", "board a: a field isn't a section such as {name: stage, max: 999}"},
		{"a: {fields: [{max: 5}]}", `board a: field "": its name is missing: it is where events have it, such as stage`},
		{"a: {fields: [{name: [x], max: 5}]}", `board a: field "": its name is missing`},
		{"a: {fields: [{name: x y, max: 5}]}", `board a: field "x y": a name has 1 to 64 letters, digits and underscores, and no digit first`},
		{"a: {fields: [{name: user_id, max: 5}]}", `board a: field "user_id": an event has a field of its own by that name: give it another`},
		{"a: {fields: [{name: x, max: 5}, {name: x, max: 6}]}", "board a: field x: there are two of that name"},
		{"a: {fields: [{name: x}]}", `board a: field "x": max is missing: it is the greatest value there is, such as 999`},
		{field("max: 0"), `board a: field "x": max "0" isn't a whole number from 1 on, up to 9007199254740991`},
		{field("max: -5"), `max "-5" isn't a whole number from 1 on, up to`},
		{field("max: 1.5"), `max "1.5" isn't a whole number from 1 on, up to`},
		{field("max: 9007199254740992"), `max "9007199254740992" isn't a whole number from 1 on, up to 9007199254740991`},
		{field("max: 5, order: least"), `board a: field "x": order "least" isn't most or fewest`},
		{field("max: 5, signed: perhaps"), `board a: field "x": signed "perhaps" isn't true or false`},
		{field("max: 5, sign: true"), `board a: field "x": there is no "sign"; the nearest is signed`},
		{"a: {fields: [{name: x, max: 5, signed: true}, {name: y, max: 6}]}", "board a: field x: only a board's single field goes below 0"},
		// For the layout with the least room, what has room in it.
		{field("max: 9007199254740991"), "board a: its yearly scores: layout readable: x 0 to 9007199254740991: out of range: max 4503599627370495 of x fits"},
		{"a: {fields: [{name: x, max: 999999999}, {name: y, max: 999999999}]}", "board a: its yearly scores: layout readable: "},
		{"a: {fields: [{name: x, max: 999999999}, {name: y, max: 999999999}]}", "fits"},
	} {
		found := problems(t, "boards:\n  "+c.boards+"\n")
		if e := found["boards"]; e == nil || !strings.Contains(e.Error(), c.says) || len(found) != 1 {
			t.Errorf("%s: found %v, want boards: …%s", c.boards, found, c.says)
		}
		if _, err := Load(writeFile(t, "boards:\n  "+c.boards+"\n"), nil); err != nil && strings.Count(err.Error(), "\n") > 2 {
			t.Errorf("%s: %v", c.boards, err) // a line for each period at most
		}
	}
	for _, c := range []struct{ file, says string }{
		{"boards: [a b]", "has \"a b\", which isn't a board's name: 1 to 64 letters, digits, `.`, `_` or `-`, the first a letter or digit"},
		{"boards: ['*']", `has "*", which is for a section of boards: leave the list empty for any name`},
		{"boards: [a, a]", `names "a" twice`},
	} {
		if e := problems(t, c.file)["boards"]; e == nil || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %v, want …%s", c.file, e, c.says)
		}
	}
	if e := problems(t, "", "STANDINGS_BOARDS={a: ")["boards"]; e == nil || !strings.Contains(e.Error(), "isn't a section of boards: ") {
		t.Errorf("a section that isn't YAML: %v", e)
	}
}

// One fault is one problem, and it is with the key that has it.
func TestWhatIsWrongWithAPeriodIsSaidOnceAndOfItsKey(t *testing.T) {
	const start, end = "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z"
	for _, c := range []struct{ period, key, says string }{
		{"x: 5", "periods.x", "there is no such period; if it is to be one of your own, it is one of three kinds: calendar; start and end; every and from"},
		{"x: {}", "periods.x", "there is no such period"},
		{"x: ", "periods.x", "there is no such period"},
		{"x: {time_zone: UTC}", "periods.x.time_zone", "there is no such period"},
		{"x: {start: 1969-01-01T00:00:00Z, end: " + end + "}", "periods.x.start", "a season lies between 1970 and 2106"},
		{"x: {start: " + start + ", end: 2200-01-01T00:00:00Z}", "periods.x.end", "a season lies between 1970 and 2106"},
		{"x: {every: 1h, from: 2200-01-01T00:00:00Z}", "periods.x.from", "stretches start between 1970 and 2106"},
		{"x: {every: soon, from: " + start + "}", "periods.x.every", "isn't a duration such as"},
		{"x: {calendar: weekly, retention: soon}", "periods.x.retention", "isn't a duration such as"},
		{"x: {calendar: weekly, lateness: -1s}", "periods.x.lateness", "isn't a duration such as"},
		{"x: {calendar: [weekly]}", "periods.x.calendar", "is a list where a word belongs"},
		{"x: {calendar: weekly, enabled: maybe}", "periods.x.enabled", "isn't true or false"},
	} {
		path := writeFile(t, "periods:\n  "+c.period+"\n")
		_, err := Load(path, nil)
		if e := problems(t, "periods:\n  "+c.period+"\n")[c.key]; e == nil || !strings.Contains(e.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s: …%s", c.period, err, c.key, c.says)
		}
	}
}
