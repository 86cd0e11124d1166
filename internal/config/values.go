package config

// The types of settings: how each is parsed, formatted and checked; and suggestions for mistyped names.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/units"
)

// value reads and writes the value of an option.
type value struct {
	kind    string // the type's name in the documentation
	rule    string // the range in the documentation; empty: any
	list    bool   // YAML may give a list
	text    func() string
	set     func(text string) error    // its error states what would be valid
	check   func() error               // checks the range
	section func(map[string]any) error // reads a YAML section; nil: a section is not allowed
	shown   func() string              // the text without possible secrets; nil: the text itself
}

// textValue is a text. If ok is not nil, it must return nil for the text.
func textValue(p *string, rule string, ok func(string) error) value {
	return value{
		kind: "text", rule: rule,
		text: func() string { return *p },
		set:  func(text string) error { *p = text; return nil },
		check: func() error {
			if ok == nil {
				return nil
			}
			return ok(*p)
		},
	}
}

// choiceValue is one of a few words.
func choiceValue(p *string, words []string) value {
	rule := strings.Join(words, ", ")
	v := textValue(p, rule, func(text string) error {
		if !slices.Contains(words, text) {
			return errors.New("must be one of " + rule)
		}
		return nil
	})
	v.kind = "word"
	return v
}

// listValue is a list of at least least texts: a YAML list, or text with commas.
func listValue(p *[]string, least int, rule string, ok func(string) error) value {
	return value{
		kind: "list", rule: rule, list: true,
		text: func() string { return strings.Join(*p, ",") },
		set: func(text string) error {
			*p = nil
			for item := range strings.SplitSeq(text, ",") {
				if item = strings.TrimSpace(item); item != "" {
					*p = append(*p, item)
				}
			}
			return nil
		},
		check: func() error {
			if len(*p) < least {
				return errors.New("must not be empty")
			}
			for i, item := range *p {
				if slices.Contains((*p)[:i], item) {
					return fmt.Errorf("contains %q twice", item)
				}
				if err := ok(item); err != nil {
					if all := strings.Join(*p, ","); withoutUser(all) != all {
						return fmt.Errorf("has a value that %w", err)
					}
					return fmt.Errorf("has %q, which %w", item, err)
				}
			}
			return nil
		},
	}
}

// parsed is a value of another type than text.
func parsed[T any](p *T, kind, rule string, parse func(string) (T, error), format func(T) string, check func(T) error) value {
	return value{
		kind: kind, rule: rule,
		text: func() string { return format(*p) },
		set: func(text string) error {
			n, err := parse(text)
			if err == nil {
				*p = n
			}
			return err
		},
		check: func() error { return check(*p) },
	}
}

func boolValue(p *bool) value {
	parse := func(text string) (bool, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			err = errors.New("must be true or false")
		}
		return b, err
	}
	return parsed(p, "bool", "true, false", parse, strconv.FormatBool, func(bool) error { return nil })
}

// ranged is a value between a minimum and a maximum.
func ranged[T int64 | time.Duration](p *T, low, high T, kind string, parse func(string) (T, error), format func(T) string) value {
	rule := format(low)
	if high > low {
		rule += " to " + format(high)
	}
	return parsed(p, kind, rule, parse, format, func(n T) error {
		if n < low || n > high {
			return errors.New("is out of range: " + rule)
		}
		return nil
	})
}

func intValue(p *int64, low, high int64) value {
	parse := func(text string) (int64, error) {
		n, err := units.ParseWhole(text)
		if err != nil {
			err = errors.New("must be a whole number")
		}
		return n, err
	}
	return ranged(p, low, high, "number", parse, func(n int64) string { return strconv.FormatInt(n, 10) })
}

// bytesValue is a size in bytes: 64KiB, 1MiB, or a plain number.
func bytesValue(p *int64, low, high int64) value {
	parse := func(text string) (int64, error) {
		n, ok := units.ParseBytes(text)
		if !ok {
			return 0, errors.New("must be a size such as 64KiB or 1MiB, or a number of bytes")
		}
		return n, nil
	}
	return ranged(p, low, high, "size", parse, units.FormatBytes)
}

// durationValue is a duration in Go's format, in which d and w are also units.
func durationValue(p *time.Duration, low, high time.Duration) value {
	return ranged(p, low, high, "duration", units.ParseDuration, units.FormatDuration)
}

// orEmpty returns v with the additional value "", which reset sets and empty reports.
func orEmpty(v value, empty func() bool, reset func()) value {
	with := v
	with.rule = "empty, or " + v.rule
	with.text = func() string {
		if empty() {
			return ""
		}
		return v.text()
	}
	with.set = func(text string) error {
		if reset(); text == "" {
			return nil
		}
		return v.set(text)
	}
	with.check = func() error {
		if empty() {
			return nil
		}
		return v.check()
	}
	return with
}

// optionalDuration is a duration of at most high; an empty text is nil.
func optionalDuration(p **time.Duration, high time.Duration) value {
	given := new(time.Duration)
	d := durationValue(given, 0, high)
	set := d.set
	d.set = func(text string) error {
		err := set(text)
		if err == nil {
			*p = given
		}
		return err
	}
	return orEmpty(d, func() bool { return *p == nil }, func() { *p = nil })
}

// durationOrNone is a duration between low and high; an empty text is 0.
func durationOrNone(p *time.Duration, low, high time.Duration) value {
	return orEmpty(durationValue(p, low, high), func() bool { return *p == 0 }, func() { *p = 0 })
}

// choiceOrNone is one of a few words, or empty.
func choiceOrNone(p *string, words []string) value {
	return orEmpty(choiceValue(p, words), func() bool { return *p == "" }, func() { *p = "" })
}

// Nearest returns the n names that differ from typed in the fewest characters, the nearest first.
func Nearest(typed string, names []string, n int) []string {
	sorted, far := slices.Clone(names), make(map[string]int, len(names))
	for _, name := range names {
		far[name] = distance(typed, name)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Or(far[a]-far[b], strings.Compare(a, b)) })
	return sorted[:min(n, len(sorted))]
}

func nearest(typed string, names []string) string { return Nearest(typed, names, 1)[0] }

// distance returns the Levenshtein distance, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
