package rules

import (
	"encoding/json"

	"github.com/standings/standings/internal/codec"
)

// Script returns the rule as layouts.lua parses it, for windows whose layout packs tuples as p does: a JSON
// object with
//
//	score    sum, best or last
//	weight   by field, what 1 in its digit adds to a packed tuple
//	top      by field, its greatest digit; the least is 0
//	zero     by field, the digit that a sum starts from
//	bias     difference of a signed field's digits and values, so that no digit is negative
//	text     the rule's Text
//
// Every number is below 2^53, so that Lua represents it exactly. Digits returns the digits for the script.
func (r *Rule) Script(p *codec.Packing) string {
	text := struct {
		Score  Score   `json:"score"`
		Weight []int64 `json:"weight"`
		Top    []int64 `json:"top"`
		Zero   []int64 `json:"zero"`
		Bias   int64   `json:"bias"`
		Text   string  `json:"text"`
	}{Score: r.Score, Bias: -p.Min(), Text: r.Text()}
	zero := r.Fields.Digits(codec.Tuple{})
	for i := range r.n {
		text.Weight = append(text.Weight, p.Weight(i))
		text.Top = append(text.Top, r.limit[i]+text.Bias)
		text.Zero = append(text.Zero, zero[i]+text.Bias)
	}
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // text and integers only
	}
	return string(out)
}
