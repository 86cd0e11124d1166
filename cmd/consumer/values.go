package main

// The types that a setting can have: how each is read from text, written as
// text, and held to its range.

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
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
	n, err := parseWhole(text)
	if err != nil {
		return errors.New("isn't a whole number")
	}
	*v.p = n
	return nil
}

// parseWhole takes 1_000_000 and 1e6 as well, as YAML does.
func parseWhole(text string) (int64, error) {
	text = strings.ReplaceAll(text, "_", "")
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, nil
	}
	f, ferr := strconv.ParseFloat(text, 64)
	if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, err
	}
	return int64(f), nil
}

// bytesValue is a size in bytes: 64KiB, 1MiB, or a plain number.
type bytesValue struct {
	p        *int64
	min, max int64
}

func (v bytesValue) text() string { return formatBytes(*v.p) }
func (v bytesValue) kind() string { return "size" }
func (v bytesValue) rule() string { return formatBytes(v.min) + " to " + formatBytes(v.max) }
func (v bytesValue) check() error { return inRange(*v.p, v.min, v.max, v.rule()) }
func (v bytesValue) set(text string) error {
	n, ok := parseBytes(text)
	if !ok {
		return errors.New("isn't a size such as 64KiB, 1MiB or a plain number of bytes")
	}
	*v.p = n
	return nil
}

var byteUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseBytes(text string) (int64, bool) {
	size := int64(1)
	for _, u := range byteUnits {
		if number, cut := strings.CutSuffix(text, u.name); cut {
			text, size = strings.TrimSpace(number), u.size
			break
		}
	}
	n, err := parseWhole(text)
	if err != nil || n < 0 || n > math.MaxInt64/size {
		return 0, false
	}
	return n * size, true
}

func formatBytes(n int64) string {
	for _, u := range byteUnits[:3] {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// durationValue is a stretch of time as Go writes it, with d and w besides.
type durationValue struct {
	p        *time.Duration
	min, max time.Duration
}

func (v durationValue) text() string { return formatDuration(*v.p) }
func (v durationValue) kind() string { return "duration" }
func (v durationValue) rule() string { return formatDuration(v.min) + " to " + formatDuration(v.max) }
func (v durationValue) check() error { return inRange(*v.p, v.min, v.max, v.rule()) }
func (v durationValue) set(text string) error {
	d, err := parseDuration(text)
	if err != nil {
		return errors.New("isn't a duration such as 500ms, 10s, 24h or 60d")
	}
	*v.p = d
	return nil
}

const day = 24 * time.Hour

// parseDuration reads what time.ParseDuration does, after weeks and days: 60d,
// 1w, 1d12h. A day is 24 hours.
func parseDuration(text string) (time.Duration, error) {
	sum, rest := time.Duration(0), text
	for _, u := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		number, after, cut := strings.Cut(rest, u.letter)
		if !cut {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > int64(math.MaxInt64/u.length) {
			return 0, fmt.Errorf("duration %q: not a number of %s", text, u.letter)
		}
		sum, rest = sum+time.Duration(n)*u.length, after
	}
	if rest == "" && rest != text {
		return positive(sum, text)
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("duration %q: %w", text, err)
	}
	return positive(sum+d, text)
}

func positive(d time.Duration, text string) (time.Duration, error) {
	if d < 0 {
		return 0, fmt.Errorf("duration %q: negative or too long", text)
	}
	return d, nil
}

// formatDuration writes 60d rather than 1440h0m0s.
func formatDuration(d time.Duration) string {
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func inRange[T int64 | time.Duration](n, low, high T, rule string) error {
	if n < low || n > high {
		return fmt.Errorf("is out of range: %s", rule)
	}
	return nil
}
