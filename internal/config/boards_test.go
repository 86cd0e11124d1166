package config

import (
	"strings"
	"testing"
)

// Each message names the board and the field, the fault, and a valid value.
func TestWhatIsWrongWithABoardIsNamed(t *testing.T) {
	field := func(settings string) string { return "a: {fields: [{name: x, " + settings + "}]}" }
	for _, c := range []struct{ boards, says string }{
		{"a: 5", "board a: must be a section: {} is a board with the default rule"},
		{"a: [x]", "board a: must be a section: {}"},
		{"'a b': {}", "has a board \"a b\": a name must be 1 to 64 letters, digits, `.`, `_` or `-`, the first a letter or digit, or \"*\" for"},
		{"a: {scores: best}", `board a: unknown setting "scores"; did you mean score?`},
		{"a: {score: most}", `board a: score "most" must be one of sum, best, last`},
		{"a: {score: [best]}", `board a: score "[best]" must be one of sum, best, last`},
		{"a: {periods: weekly}", "board a: periods must be a list of names such as [weekly]; remove it to use all enabled periods"},
		{"a: {periods: []}", "board a: periods must be a list of names such as [weekly]"},
		{"a: {periods: [{weekly: x}]}", "board a: periods must be a list of names such as [weekly]"},
		{"a: {periods: [weekly, weekly]}", `board a: periods names "weekly" twice`},
		{"a: {periods: [daily]}", `board a: periods names "daily", which is not enabled: set periods.daily.enabled or remove it`},
		{"a: {periods: [wekly]}", `board a: periods names "wekly", an unknown period; did you mean weekly?`},
		{"a: {fields: stage}", "board a: fields must be a list of 1 to 5 fields such as [{name: stage, max: 999}]"},
		{"a: {fields: []}", "board a: fields must be a list of 1 to 5 fields such as"},
		{"a: {fields: {name: x, max: 5}}", "board a: fields must be a list of 1 to 5 fields such as"},
		{"a: {fields: [" + strings.Repeat("{name: x, max: 5},", 6) + "]}", "board a: fields must be a list of 1 to 5 fields such as"},
		{"a: {fields: [stage]}", "board a: a field must be a section such as {name: stage, max: 999}"},
		{"a: {fields: [{max: 5}]}", `board a: field "": name is missing: it names the field in events, such as stage`},
		{"a: {fields: [{name: [x], max: 5}]}", `board a: field "": name is missing`},
		{"a: {fields: [{name: x y, max: 5}]}", `board a: field "x y": a name must have 1 to 64 letters, digits and underscores, and not start with a digit`},
		{"a: {fields: [{name: user_id, max: 5}]}", `board a: field "user_id": the name is reserved for a field of every event: choose another`},
		{"a: {fields: [{name: x, max: 5}, {name: x, max: 6}]}", "board a: field x: duplicate name"},
		{"a: {fields: [{name: x}]}", `board a: field "x": max is missing: it is the greatest possible value, such as 999`},
		{field("max: 0"), `board a: field "x": max "0" must be a whole number from 1 to 9007199254740991`},
		{field("max: -5"), `max "-5" must be a whole number from 1 to`},
		{field("max: 1.5"), `max "1.5" must be a whole number from 1 to`},
		{field("max: 9007199254740992"), `max "9007199254740992" must be a whole number from 1 to 9007199254740991`},
		{field("max: 5, order: least"), `board a: field "x": order "least" must be most or fewest`},
		{field("max: 5, signed: perhaps"), `board a: field "x": signed "perhaps" must be true or false`},
		{field("max: 5, sign: true"), `board a: field "x": unknown setting "sign"; did you mean signed?`},
		{"a: {fields: [{name: x, max: 5, signed: true}, {name: y, max: 6}]}", "board a: field x: only a board's single field can be signed"},
		// For the layout with the least room, the message names what would fit.
		{field("max: 9007199254740991"), "board a: yearly scores: layout readable: x 0 to 9007199254740991: out of range: max 4503599627370495 of x fits"},
		{"a: {fields: [{name: x, max: 999999999}, {name: y, max: 999999999}]}", "board a: yearly scores: layout readable: "},
		{"a: {fields: [{name: x, max: 999999999}, {name: y, max: 999999999}]}", "fits"},
	} {
		refuses(t, "boards:\n  "+c.boards+"\n", "boards", c.says)
	}
	for _, c := range []struct{ file, says string }{
		{"boards: [a b]", "has \"a b\", which is not a board name: use 1 to 64 letters, digits, `.`, `_` or `-`, the first a letter or digit"},
		{"boards: ['*']", `has "*", which is only valid in a section of boards: leave the list empty to accept any name`},
		{"boards: [a, a]", `contains "a" twice`},
	} {
		refuses(t, c.file, "boards", c.says)
	}
	if e := problems(t, "", "STANDINGS_BOARDS={a: ")["boards"]; e == nil || !strings.Contains(e.Error(), "is not a section of boards: ") {
		t.Errorf("a section that isn't YAML: %v", e)
	}
}
