package config

// The setting boards, as it is written: either a list of the names that events may use, or a section with a
// rule for each board.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/internal/units"
)

// BoardSpec is a board as it is configured.
type BoardSpec struct {
	Name    string      `json:"-"` // or rules.AnyBoard, for all boards without an entry
	Score   rules.Score `json:"score,omitempty"`
	Fields  []FieldSpec `json:"fields,omitempty"`
	Periods []string    `json:"periods,omitempty"`
}

// FieldSpec is a field of a board, as it is configured.
type FieldSpec struct {
	Name   string `json:"name"`
	Max    int64  `json:"max"`
	Order  string `json:"order,omitempty"` // most or fewest
	Signed bool   `json:"signed,omitempty"`
}

const (
	orderMost   = "most"
	orderFewest = "fewest"
)

// boardsValue is a list of names, or a section of boards.
func boardsValue(c *Config) value {
	v := listValue(&c.Boards, 0, "names, or empty for any; or a section with a rule for each", listedBoard)
	list, names, check := v.set, v.text, v.check
	v.check = func() error {
		if c.Specs != nil {
			return nil // checked when it was read
		}
		return check()
	}
	v.section = func(section map[string]any) error {
		c.Boards, c.Specs = nil, nil
		var problems []string
		for _, name := range slices.Sorted(maps.Keys(section)) {
			spec, wrong := boardSpec(name, section[name])
			problems = append(problems, wrong...)
			c.Specs = append(c.Specs, spec)
			c.Boards = append(c.Boards, name)
		}
		if _, ok := section[rules.AnyBoard]; ok {
			c.Boards = nil
		}
		if len(problems) > 0 {
			return errors.New(strings.Join(problems, "; "))
		}
		return nil
	}
	v.set = func(text string) error {
		c.Specs = nil
		if !strings.HasPrefix(text, "{") {
			return list(text)
		}
		var section map[string]any
		if err := yaml.Unmarshal([]byte(text), &section); err != nil {
			return fmt.Errorf("is not a section of boards: %w", err)
		}
		return v.section(section)
	}
	v.text = func() string {
		if c.Specs == nil {
			return names()
		}
		all := map[string]BoardSpec{}
		for _, s := range c.Specs {
			all[s.Name] = s
		}
		text, err := json.Marshal(all)
		if err != nil {
			panic(err) // texts and numbers only
		}
		return string(text)
	}
	return v
}

// listedBoard checks a name in a list of boards.
func listedBoard(name string) error {
	if name == rules.AnyBoard {
		return errors.New("is only valid in a section of boards: leave the list empty to accept any name")
	}
	return CheckBoard(name)
}

// boardSpec reads a board, and returns all its problems.
func boardSpec(name string, raw any) (s BoardSpec, problems []string) {
	s.Name = name
	wrong := func(format string, args ...any) {
		problems = append(problems, "board "+name+": "+fmt.Sprintf(format, args...))
	}
	if name != rules.AnyBoard && CheckBoard(name) != nil {
		problems = append(problems, fmt.Sprintf("has a board %q: a name must be %s, or %q for all others", name, nameForm, rules.AnyBoard))
		return s, problems
	}
	section, ok := asSection(raw)
	if !ok {
		wrong("must be a section: {} is a board with the default rule")
		return s, problems
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		switch v := section[key]; key {
		case "score":
			text, plain := scalar(v)
			if !plain {
				text = fmt.Sprint(v)
			}
			s.Score = rules.Score(text)
			if !slices.Contains(rules.Scores(), s.Score) {
				wrong("score %q must be one of %s", text, joined(rules.Scores()))
			}
		case "periods":
			list, ok := v.([]any)
			for _, one := range list {
				text, plain := scalar(one)
				ok = ok && plain
				if slices.Contains(s.Periods, text) {
					wrong("periods names %q twice", text)
				}
				s.Periods = append(s.Periods, text)
			}
			if !ok || len(list) == 0 {
				wrong("periods must be a list of names such as [weekly]; remove it to use all enabled periods")
			}
		case "fields":
			list, ok := v.([]any)
			if !ok || len(list) == 0 || len(list) > codec.MaxFields {
				wrong("fields must be a list of 1 to %d fields such as [{name: stage, max: 999}]", codec.MaxFields)
				continue
			}
			for _, one := range list {
				f, bad := fieldSpec(one)
				for _, text := range bad {
					wrong("%s", text)
				}
				s.Fields = append(s.Fields, f)
			}
		default:
			wrong("unknown setting %q; did you mean %s?", key, nearest(key, []string{"score", "fields", "periods"}))
		}
	}
	return s, problems
}

// mostMax is the maximum that any layout can hold.
const mostMax = 1<<53 - 1

func fieldSpec(raw any) (f FieldSpec, problems []string) {
	section, ok := asSection(raw)
	if !ok {
		return f, []string{"a field must be a section such as {name: stage, max: 999}"}
	}
	f.Name, _ = scalar(section["name"])
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("field %q: ", f.Name)+fmt.Sprintf(format, args...))
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		text, _ := scalar(section[key])
		switch key {
		case "name":
			if event.IsOwn(text) && text != "points" {
				wrong("the name is reserved for a field of every event: choose another")
			}
		case "max":
			n, err := units.ParseWhole(text)
			if f.Max = n; err != nil || n < 1 || n > mostMax {
				wrong("max %q must be a whole number from 1 to %d", text, int64(mostMax))
			}
		case "order":
			if f.Order = text; text != orderMost && text != orderFewest {
				wrong("order %q must be %s or %s", text, orderMost, orderFewest)
			}
		case "signed":
			if f.Signed = text == "true"; text != "true" && text != "false" {
				wrong("signed %q must be true or false", text)
			}
		default:
			wrong("unknown setting %q; did you mean %s?", key, nearest(key, []string{"name", "max", "order", "signed"}))
		}
	}
	if f.Name == "" {
		wrong("name is missing: it names the field in events, such as stage")
	}
	if _, ok := section["max"]; !ok {
		wrong("max is missing: it is the greatest possible value, such as 999")
	}
	return f, problems
}

// asSection returns raw as a section. An absent value is an empty section.
func asSection(raw any) (map[string]any, bool) {
	switch v := raw.(type) {
	case nil:
		return nil, true
	case map[string]any:
		return v, true
	case map[any]any:
		all := map[string]any{}
		for key, value := range v {
			all[fmt.Sprint(key)] = value
		}
		return all, true
	}
	return nil, false
}

func joined[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// otherFields returns the names of the fields that boards count, except points. Each of them has a setting
// event.fields.<name>. It skips invalid names, which boardSpec reports.
func otherFields(raw any) []string {
	if text, ok := raw.(string); ok && strings.HasPrefix(text, "{") {
		var section map[string]any
		if yaml.Unmarshal([]byte(text), &section) != nil {
			return nil
		}
		raw = section
	}
	boards, ok := raw.(map[string]any)
	if !ok {
		return nil
	}
	var names []string
	for _, board := range boards {
		section, _ := asSection(board)
		list, _ := section["fields"].([]any)
		for _, one := range list {
			field, _ := asSection(one)
			name, _ := scalar(field["name"])
			if fieldName.MatchString(name) && !event.IsOwn(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// otherOptions returns the settings for the paths of the fields that boards count.
func otherOptions(c *Config, names []string) []option {
	c.Others = make([]event.Other, len(names))
	var all []option
	for i, name := range names {
		c.Others[i] = event.Other{Name: name, Path: name}
		all = append(all, fieldOption(name, &c.Others[i].Path, "Field of `"+name+"`."))
	}
	return all
}
