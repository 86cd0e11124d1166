package config

// The types that a setting can have: how each is read from text, written as
// text, and held to its range.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
)

// value is where an option is kept. set reads a text, and its error says what
// would be right; check holds what was read to the option's range.
type value interface {
	set(text string) error
	text() string
	check() error
	kind() string // in the words of the documentation
	rule() string // the range, likewise; empty for any
}

type textValue struct {
	p    *string
	what string             // the range in words
	ok   func(string) error // nil: any text
}

func (v textValue) set(text string) error { *v.p = text; return nil }
func (v textValue) text() string          { return *v.p }
func (v textValue) kind() string          { return "text" }
func (v textValue) rule() string          { return v.what }
func (v textValue) check() error {
	if v.ok == nil {
		return nil
	}
	return v.ok(*v.p)
}

// choiceValue is one of a few words.
type choiceValue struct {
	p     *string
	words []string
}

func (v choiceValue) set(text string) error { *v.p = text; return nil }
func (v choiceValue) text() string          { return *v.p }
func (v choiceValue) kind() string          { return "word" }
func (v choiceValue) rule() string          { return strings.Join(v.words, ", ") }
func (v choiceValue) check() error {
	if !slices.Contains(v.words, *v.p) {
		return fmt.Errorf("isn't one of %s", v.rule())
	}
	return nil
}

// listValue is a list of texts: a YAML list, or text with commas.
type listValue struct {
	p        *[]string
	what     string
	optional bool
	ok       func(string) error
}

func (v listValue) list() {} // what YAML may give a list for

func (v listValue) set(text string) error {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	*v.p = list
	return nil
}
func (v listValue) text() string { return strings.Join(*v.p, ",") }
func (v listValue) kind() string { return "list" }
func (v listValue) rule() string { return v.what }
func (v listValue) check() error {
	if len(*v.p) == 0 && !v.optional {
		return errors.New("is empty: it needs at least one")
	}
	for i, item := range *v.p {
		if slices.Contains((*v.p)[:i], item) {
			return fmt.Errorf("names %q twice", item)
		}
		if v.ok == nil {
			continue
		}
		if err := v.ok(item); err != nil {
			if withoutUser(v.text()) != v.text() {
				return fmt.Errorf("has one which %w", err)
			}
			return fmt.Errorf("has %q, which %w", item, err)
		}
	}
	return nil
}

type boolValue struct{ p *bool }

func (v boolValue) text() string { return strconv.FormatBool(*v.p) }
func (v boolValue) kind() string { return "bool" }
func (v boolValue) rule() string { return "true, false" }
func (v boolValue) check() error { return nil }
func (v boolValue) set(text string) error {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("isn't true or false")
	}
	*v.p = b
	return nil
}

type intValue struct {
	p        *int64
	min, max int64
}

func (v intValue) text() string { return strconv.FormatInt(*v.p, 10) }
func (v intValue) kind() string { return "number" }
func (v intValue) rule() string { return fmt.Sprintf("%d to %d", v.min, v.max) }
func (v intValue) check() error { return inRange(*v.p, v.min, v.max, v.rule()) }
func (v intValue) set(text string) error {
	n, err := units.ParseWhole(text)
	if err != nil {
		return errors.New("isn't a whole number")
	}
	*v.p = n
	return nil
}

// bytesValue is a size in bytes: 64KiB, 1MiB, or a plain number.
type bytesValue struct {
	p        *int64
	min, max int64
}

func (v bytesValue) text() string { return units.FormatBytes(*v.p) }
func (v bytesValue) kind() string { return "size" }
func (v bytesValue) rule() string {
	return units.FormatBytes(v.min) + " to " + units.FormatBytes(v.max)
}
func (v bytesValue) check() error { return inRange(*v.p, v.min, v.max, v.rule()) }
func (v bytesValue) set(text string) error {
	n, ok := units.ParseBytes(text)
	if !ok {
		return errors.New("isn't a size such as 64KiB, 1MiB or a plain number of bytes")
	}
	*v.p = n
	return nil
}

// durationValue is a stretch of time as Go writes it, with d and w besides.
type durationValue struct {
	p        *time.Duration
	min, max time.Duration
}

func (v durationValue) text() string { return units.FormatDuration(*v.p) }
func (v durationValue) kind() string { return "duration" }
func (v durationValue) rule() string {
	return units.FormatDuration(v.min) + " to " + units.FormatDuration(v.max)
}
func (v durationValue) check() error { return inRange(*v.p, v.min, v.max, v.rule()) }
func (v durationValue) set(text string) error {
	d, err := units.ParseDuration(text)
	if err == nil {
		*v.p = d
	}
	return err
}

// wordValue is a duration that nobody need name: empty, it is nil.
type wordValue struct {
	p   **time.Duration
	max time.Duration
}

func (v wordValue) text() string {
	if *v.p == nil {
		return ""
	}
	return units.FormatDuration(**v.p)
}
func (v wordValue) kind() string { return "duration" }
func (v wordValue) rule() string { return "empty, or 0s to " + units.FormatDuration(v.max) }
func (v wordValue) check() error {
	if *v.p == nil {
		return nil
	}
	return inRange(**v.p, 0, v.max, v.rule())
}
func (v wordValue) set(text string) error {
	if text == "" {
		*v.p = nil
		return nil
	}
	d, err := units.ParseDuration(text)
	if err == nil {
		*v.p = &d
	}
	return err
}

func inRange[T int64 | time.Duration](n, low, high T, rule string) error {
	if n < low || n > high {
		return fmt.Errorf("is out of range: %s", rule)
	}
	return nil
}
