// Package examples has programs that read boards. This file reads a board from Redis without the API;
// docs/reading.md describes the formats.
package examples

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Layout is the encoding of points and time in a score.
type Layout struct {
	Kind string `json:"layout"` // readable or wide
	K    int    `json:"k"`      // bits of ticks
	Tick int64  `json:"tick"`   // ms
	Max  int64  `json:"max"`    // points are within ±max; wide adds max to them
}

// Decode returns the points in a score and the time at which the member reached them. Times are Unix ms;
// the window is [start, end).
func (l Layout) Decode(score float64, start, end int64) (points, reachedAt int64) {
	var ticks int64
	if l.Kind == "wide" {
		code := int64(math.Float64bits(score)) - 1<<52
		points, ticks = code>>l.K-l.Max, code&(1<<l.K-1)
	} else {
		whole := math.Floor(score) // int64(score) would round -0.9 up to 0
		points, ticks = int64(whole), int64(math.Ldexp(score-whole, l.K))
	}
	return points, max(start, end-(ticks+1)*l.Tick)
}

// Period is a period's entry in the schema.
type Period struct {
	Layout
	Of struct{ Calendar string }
}

// Lengths has the length of each built-in period, in ms.
var Lengths = map[string]int64{
	"daily": 129_600_000, "weekly": 648_000_000, "monthly": 2_721_600_000,
	"quarterly": 7_992_000_000, "yearly": 31_665_600_000, "all-time": 4_294_967_296_000,
}

// Listing is a window's entry in the listing. Times are Unix ms.
type Listing struct {
	Start, End, Expires int64
	Rule                string // set if the board has a rule of its own
	Final               int64  // the revision; 0 if the window is not final
	Sets                string // which of the window's two keys exist; empty: its board only
}

// Row is a member's standing. Fields is set if the board has a rule of its own; Points then is the packed number.
type Row struct {
	Member            string
	Points, ReachedAt int64
	Fields            map[string]int64
}

// Top returns the first n rows of a window, or redis.Nil if Redis has no such window. One transaction reads
// the rows, the layout and the window's bounds.
func Top(ctx context.Context, client redis.UniversalClient, prefix, board, period, window string, n int64) ([]Row, error) {
	key := prefix + ":{0}:"
	name := board + ":" + period + ":" + window
	tx := client.TxPipeline()
	schemaText, listing := tx.Get(ctx, key+"schema"), tx.HGet(ctx, key+"windows", name)
	found := tx.ZRevRangeWithScores(ctx, key+name, 0, n-1)
	if _, err := tx.Exec(ctx); err != nil {
		return nil, err
	}
	var schema struct{ Periods map[string]Period }
	if err := json.Unmarshal([]byte(schemaText.Val()), &schema); err != nil {
		return nil, err
	}
	p := schema.Periods[period]
	layout := p.Layout
	var w Listing
	if err := json.Unmarshal([]byte(listing.Val()), &w); err != nil {
		return nil, fmt.Errorf("%q is no listing of a window: %w", listing.Val(), err)
	}
	var fields []Field
	if w.Rule != "" {
		var err error
		length := cmp.Or(Lengths[p.Of.Calendar], Lengths[period], w.End-w.Start)
		if fields, err = ParseRule(w.Rule); err != nil {
			return nil, err
		}
		layout = ByRule(p.Kind, fields, length)
	}
	var rows []Row
	for _, z := range found.Val() {
		row := Row{Member: z.Member.(string)}
		row.Points, row.ReachedAt = layout.Decode(z.Score, w.Start, w.End)
		if fields != nil {
			row.Fields = Unpack(layout.Kind, fields, row.Points)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Field is one field of a board's rule.
type Field struct {
	Name           string
	Max            int64
	Signed, Fewest bool
}

// ParseRule returns the fields of a rule in a window's entry.
func ParseRule(rule string) ([]Field, error) {
	var fields []Field
	_, list, _ := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	for one := range strings.SplitSeq(list, ",") {
		words := strings.Split(one, ":")
		if len(words) < 2 {
			return nil, fmt.Errorf("%q is no rule", rule)
		}
		limit, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no rule: %w", rule, err)
		}
		fields = append(fields, Field{words[0], limit, slices.Contains(words[2:], "signed"), slices.Contains(words[2:], "fewest")})
	}
	return fields, nil
}

// Radix returns the field's radix in a layout of this kind.
func (f Field) Radix(kind string) int64 {
	if kind == "wide" {
		return f.Max + 1
	}
	n := int64(10)
	for n <= f.Max {
		n *= 10
	}
	return n
}

// ByRule returns the layout of a board with these fields. kind is that of its period's layout, and length the
// period's length in ms.
func ByRule(kind string, fields []Field, length int64) Layout {
	var largest int64
	for _, f := range fields {
		largest = largest*f.Radix(kind) + f.Max
	}
	l := Layout{Kind: kind, K: 1}
	numbers, limit := largest+1, int64(1<<53)
	if kind == "wide" {
		limit = 1<<63 - 1<<53
	}
	if kind == "wide" && fields[0].Signed {
		numbers, l.Max = 2*largest+1, largest
	}
	for 1<<l.K < length && numbers <= limit>>(l.K+1) {
		l.K++
	}
	l.Tick = (length + 1<<l.K - 1) >> l.K
	return l
}

// Unpack returns the fields of a packed number.
func Unpack(kind string, fields []Field, packed int64) map[string]int64 {
	values := map[string]int64{}
	for i, f := range slices.Backward(fields) {
		value := packed
		if i > 0 { // the first field takes the rest
			value = packed % f.Radix(kind)
			packed /= f.Radix(kind)
		}
		switch {
		case f.Fewest && f.Signed:
			value = -value
		case f.Fewest:
			value = f.Max - value
		}
		values[f.Name] = value
	}
	return values
}
