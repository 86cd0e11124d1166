package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/codec"
)

// Tuple is codec.Tuple.
type Tuple = codec.Tuple

// Text returns the rule as one word, which is stored with the scores that were written by it:
//
//	best(stage:999,revives:99:fewest)
//	last(elo:4000:signed)
//
// Equal rules have equal texts. A text has no blanks.
func (r *Rule) Text() string {
	var b strings.Builder
	b.WriteString(string(r.Score))
	for i, f := range r.Fields.List() {
		if i == 0 {
			b.WriteByte('(')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(f.Name + ":" + strconv.FormatInt(f.Max, 10))
		if f.Signed {
			b.WriteString(":signed")
		}
		if f.Fewest {
			b.WriteString(":fewest")
		}
	}
	return b.String() + ")"
}

// ParseRule parses the text of a rule. It accepts only what Text writes.
func ParseRule(text string) (Rule, error) {
	score, rest, ok := strings.Cut(text, "(")
	list, end := strings.CutSuffix(rest, ")")
	if !ok || !end {
		return Rule{}, fmt.Errorf("invalid rule %.80q", text)
	}
	var all []codec.Field
	for one := range strings.SplitSeq(list, ",") {
		parts := strings.Split(one, ":")
		f := codec.Field{Name: parts[0]}
		if len(parts) > 1 {
			limit, err := strconv.ParseInt(parts[1], 10, 64)
			if err != nil {
				return Rule{}, fmt.Errorf("invalid rule %.80q: %w", text, err)
			}
			f.Max = limit
			for _, word := range parts[2:] {
				f.Signed, f.Fewest = f.Signed || word == "signed", f.Fewest || word == "fewest"
			}
		}
		all = append(all, f)
	}
	fields, err := codec.NewFields(all...)
	if err != nil {
		return Rule{}, fmt.Errorf("invalid rule %.80q: %w", text, err)
	}
	r, err := New(Score(score), fields)
	if err != nil {
		return Rule{}, fmt.Errorf("invalid rule %.80q: %w", text, err)
	}
	if r.Text() != text {
		return Rule{}, fmt.Errorf("%.80q is not in canonical form: use %s", text, r.Text())
	}
	return r, nil
}

// IsDefault reports whether the rule is the one of boards without their own rule, with points within
// ±maxPoints.
func (r *Rule) IsDefault(maxPoints int64) bool {
	return r.Score == Sum && r.n == 1 && r.Fields.At(0) == codec.Field{Name: "points", Max: maxPoints, Signed: true}
}

// Boards maps boards, and AnyBoard for all other boards, to their rules. A nil rule is the default rule,
// which needs no Rule to count by. A board that is in no entry has the default rule too.
type Boards map[string]*Rule

// Of returns the rule of a board; nil is the default rule.
func (b Boards) Of(board string) *Rule {
	if r, ok := b[board]; ok {
		return r
	}
	return b[AnyBoard]
}
