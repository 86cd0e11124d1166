package simulate

// This file computes standings under boards' rules from the records alone, in the simplest way. It uses
// package oracle to find the windows of an event, implements the rest again, and shares no code with the
// product.

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/test/oracle"
)

// referee computes the expected result of records.
type referee interface {
	Add(r oracle.Record) (reason string)
	Before(r oracle.Record)
	Expected(now time.Time) (oracle.Expected, error)
	Counts() oracle.Counts
	Bad() map[oracle.At]string
}

// ruledReferee is the referee for worlds with rules.
type ruledReferee struct {
	w       *world
	records []oracle.Record
}

// Add adds a record that counts.
func (o *ruledReferee) Add(r oracle.Record) string {
	o.records = append(o.records, r)
	return ""
}

// Before does nothing: repeats are found in the logs.
func (o *ruledReferee) Before(oracle.Record) {}

// verdict is the result of a record under a configuration.
type verdict struct {
	reason      string
	skipped     bool
	late, early bool
	id, user    string
	time        int64
	parts       []verdictPart
}

type verdictPart struct {
	board  *ruledBoard
	window *ruledWindow
	values []int64
}

// ruledWindow is a window of a period, as package oracle defines it.
type ruledWindow struct {
	period              string
	name                string // in the listing, without the board
	start, end, expires int64
}

type verdictOf struct {
	oracle.At
	book int
}

// judged returns the verdict on a record under a configuration.
func (w *world) judged(r oracle.Record, n int) *verdict {
	at := verdictOf{oracle.At{Partition: r.Partition, Offset: r.Offset}, n}
	if v := w.verdicts[at]; v != nil {
		return v
	}
	v := w.judgeAnew(r, n)
	if w.verdicts == nil {
		w.verdicts = map[verdictOf]*verdict{}
	}
	w.verdicts[at] = v
	return v
}

func (w *world) judgeAnew(r oracle.Record, n int) *verdict {
	if r.Value == nil {
		return &verdict{skipped: true}
	}
	b, v := w.setup.bookOf(n), &verdict{}
	base := w.setup.oracle()
	base.Duplicates, base.Boards, base.MaxFuture = 0, b.boards, b.maxFuture
	base.Fields = map[string][]string{"points": {b.path("points")}}
	if v.reason = oracle.New(base).Judge(r); v.reason != "" && v.reason != oracle.BadTime {
		return v
	}
	var e map[string]json.RawMessage
	if err := json.Unmarshal(r.Value, &e); err != nil {
		panic(err) // package oracle has already parsed it
	}
	_ = json.Unmarshal(e["event_id"], &v.id)
	_ = json.Unmarshal(e["user_id"], &v.user)
	v.time = r.Time
	if e["occurred_at"] != nil {
		_ = json.Unmarshal(e["occurred_at"], &v.time)
	}
	names := []string{"global"}
	if one := ""; json.Unmarshal(e["board"], &one) == nil && one != "" {
		names = []string{one}
	} else if e["board"] != nil {
		_ = json.Unmarshal(e["board"], &names)
	}
	early := true
	var lacking bool
	for i, name := range names {
		board := w.setup.boardOf(name)
		var values []int64
		for _, f := range board.fields {
			value, err := strconv.ParseInt(string(e[b.path(f.name)]), 10, 64)
			if lacking = lacking || err != nil || value > f.most || value < -f.most || value < 0 && !f.signed && board.score != "sum"; lacking {
				break
			}
			values = append(values, value)
		}
		if v.reason != "" || slices.Contains(names[:i], name) {
			continue
		}
		for _, period := range w.setup.Periods {
			if !board.has(period) {
				continue
			}
			if of := oraclePeriod(period, w.setup.Layout); of.Every == 0 && of.End == 0 || v.time >= of.Start {
				early = false
			}
			if window := w.windowAt(period, v.time); window != nil && r.Time <= window.end+b.latenessOf(period).Milliseconds() {
				v.parts = append(v.parts, verdictPart{board, window, values})
			}
		}
	}
	switch {
	case lacking:
		v.reason = oracle.Invalid
		w.count(lacksFields)
	case v.reason == "" && len(v.parts) == 0:
		v.early, v.late = early, !early
	}
	return v
}

// boardOf returns a board with its rule.
func (s *setup) boardOf(name string) *ruledBoard {
	for i := range s.Ruled {
		if s.Ruled[i].name == name {
			return &s.Ruled[i]
		}
	}
	return &ruledBoard{name: name, score: "sum", fields: []ruledField{{name: "points", most: s.MaxPoints, signed: true}}}
}

// windowAt returns the window of a period that contains a time; nil if there is none.
func (w *world) windowAt(period string, at int64) *ruledWindow {
	for _, known := range w.windows[period] {
		if known.start <= at && at < known.end {
			return known
		}
	}
	c := w.setup.oracle()
	c.Duplicates, c.Periods = 0, []oracle.Period{oraclePeriod(period, w.setup.Layout)}
	o := oracle.New(c)
	if reason := o.Add(oracle.Record{Time: at, Value: fmt.Appendf(nil, `{"user_id":"u","points":1,"occurred_at":%d}`, at)}); reason != "" {
		panic("simulate: a time is " + reason)
	}
	want, err := o.Expected(time.UnixMilli(0))
	if err != nil {
		panic(err)
	}
	for listing, text := range want.Windows {
		l, err := oracle.ReadListing(text)
		if err != nil {
			panic(err)
		}
		found := &ruledWindow{period: period, name: strings.TrimPrefix(listing, "global:"), start: l.Start, end: l.End, expires: l.Expires}
		if w.windows == nil {
			w.windows = map[string][]*ruledWindow{}
		}
		w.windows[period] = append(w.windows[period], found)
		return found
	}
	return nil
}

// repeatsBy returns the duplicates in the logs under a configuration.
func (w *world) repeatsBy(n int) map[oracle.At]bool {
	all := map[oracle.At]bool{}
	most := w.setup.bookOf(n).duplicates
	if most == 0 {
		return all
	}
	for _, p := range w.kafka.partitions {
		latest := map[[2]string]int64{}
		p.visible(0, func(r *stored) {
			v := w.judged(recordOf(p.id, r, false), n)
			if v.skipped || v.reason != "" || v.id == "" {
				return
			}
			ids := [2]string{v.id, v.user}
			if before, seen := latest[ids]; seen && r.offset-before <= most {
				all[oracle.At{Partition: p.id, Offset: r.offset}] = true
			}
			latest[ids] = r.offset
		})
	}
	return all
}

// outcomes calls do for each record, with the verdict of the configuration by which it counts, and whether
// it is a duplicate.
func (o *ruledReferee) outcomes(do func(r oracle.Record, v *verdict, repeats bool)) {
	byBook := map[int]map[oracle.At]bool{}
	for _, r := range o.records {
		n := o.w.shards[0].bookAt(r.Partition, r.Offset)
		if byBook[n] == nil {
			byBook[n] = o.w.repeatsBy(n)
		}
		v := o.w.judged(r, n)
		do(r, v, byBook[n][oracle.At{Partition: r.Partition, Offset: r.Offset}])
	}
}

// Counts returns the number of records per result.
func (o *ruledReferee) Counts() oracle.Counts {
	c := oracle.Counts{Dead: map[string]int64{}}
	o.outcomes(func(r oracle.Record, v *verdict, repeats bool) {
		switch {
		case v.skipped:
			c.Skipped++
		case v.reason != "":
			c.Dead[v.reason]++
		case repeats:
			c.Duplicates++
		case r.Overflow:
			c.Dead[oracle.Overflow]++
		case v.early:
			c.Early++
		case v.late:
			c.Late++
		default:
			c.Applied++
		}
	})
	return c
}

// Bad returns the records that must have a dead letter.
func (o *ruledReferee) Bad() map[oracle.At]string {
	bad := map[oracle.At]string{}
	o.outcomes(func(r oracle.Record, v *verdict, repeats bool) {
		at := oracle.At{Partition: r.Partition, Offset: r.Offset}
		switch {
		case v.reason != "":
			bad[at] = v.reason
		case r.Overflow && !repeats:
			bad[at] = oracle.Overflow
		}
	})
	return bad
}

// judges reports whether a record is bad for a reason under any configuration: one process may write a dead
// letter and another count the record.
func (w *world) judges(r oracle.Record, reason string) bool {
	for n := range max(1, len(w.setup.Books)) {
		if w.judged(r, n).reason == reason {
			return true
		}
	}
	return false
}

// ruledChange is the effect of an event in a window.
type ruledChange struct {
	values []int64
	time   int64
}

// Expected returns what Redis must hold.
func (o *ruledReferee) Expected(now time.Time) (oracle.Expected, error) {
	e := oracle.Expected{Boards: map[string]map[string]uint64{}, Windows: map[string]string{}, Expires: map[string]int64{}}
	type key struct {
		board, listing string
		window         *ruledWindow
	}
	changes := map[key]map[string][]ruledChange{}
	boards := map[string]*ruledBoard{}
	o.outcomes(func(r oracle.Record, v *verdict, repeats bool) {
		if v.reason != "" || repeats || r.Overflow {
			return
		}
		for _, p := range v.parts {
			k := key{p.board.name, p.board.name + ":" + p.window.name, p.window}
			boards[p.board.name] = p.board
			if changes[k] == nil {
				changes[k] = map[string][]ruledChange{}
			}
			changes[k][v.user] = append(changes[k][v.user], ruledChange{p.values, v.time})
		}
	})
	for k, members := range changes {
		if k.window.expires <= now.UnixMilli() {
			continue
		}
		board := boards[k.board]
		l := layoutFor(board, k.window.period, o.w.setup.Layout)
		scores := map[string]uint64{}
		for user, all := range members {
			bits, err := l.score(board, k.window, all)
			if err != nil {
				return e, fmt.Errorf("%q in %s: %w", user, k.listing, err)
			}
			scores[user] = bits
		}
		e.Boards[k.listing] = scores
		e.Windows[k.listing] = oracle.Listing{Start: k.window.start, End: k.window.end, Expires: k.window.expires, Rule: board.text()}.Text()
		e.Expires[k.listing] = k.window.expires + day.Milliseconds()
	}
	return e, nil
}

// text returns the board's rule as in a listing; empty for the default rule.
func (b *ruledBoard) text() string {
	var fields []string
	for _, f := range b.fields {
		if f.signed {
			return ""
		}
		text := fmt.Sprintf("%s:%d", f.name, f.most)
		if f.fewest {
			text += ":fewest"
		}
		fields = append(fields, text)
	}
	return fmt.Sprintf("%s(%s)", b.score, strings.Join(fields, ","))
}

// ruledLayout is the layout of a board's scores in a period, from the specification of both layouts.
type ruledLayout struct {
	wide    bool
	k       uint
	tick    int64
	weights []*big.Int
}

var calendarLengths = map[string]time.Duration{"daily": 36 * time.Hour, "weekly": 180 * time.Hour, "monthly": 756 * time.Hour, "yearly": 8796 * time.Hour}

func layoutFor(b *ruledBoard, period, kind string) ruledLayout {
	of := oraclePeriod(period, kind)
	name := of.Calendar
	if name == "" {
		name = period
	}
	ms := calendarLengths[name].Milliseconds()
	if of.Every > 0 {
		ms = of.Every
	} else if of.End > 0 {
		ms = of.End - of.Start
	}
	l := ruledLayout{wide: kind == "wide", weights: make([]*big.Int, len(b.fields))}
	weight, best := big.NewInt(1), new(big.Int)
	for i, f := range slices.Backward(b.fields) {
		l.weights[i] = new(big.Int).Set(weight)
		best.Add(best, new(big.Int).Mul(weight, big.NewInt(f.most)))
		radix := f.most + 1
		if !l.wide {
			for radix = 1; radix <= f.most; radix *= 10 {
			}
		}
		weight.Mul(weight, big.NewInt(radix))
	}
	one := big.NewInt(1)
	codes := new(big.Int).Add(best, one) // number of distinct codes
	if b.fields[0].signed && l.wide {
		codes.Add(codes, best)
	}
	most := new(big.Int).Lsh(one, 53)
	if l.wide {
		most.Sub(new(big.Int).Lsh(one, 63), most)
	}
	fits := func(k uint) bool { return new(big.Int).Lsh(codes, k).Cmp(most) <= 0 }
	for l.k = 1; int64(1)<<l.k < ms && fits(l.k+1); l.k++ {
	}
	l.tick = (ms + int64(1)<<l.k - 1) >> l.k
	return l
}

// score returns the bits of a member's score after all events.
func (l *ruledLayout) score(b *ruledBoard, window *ruledWindow, all []ruledChange) (uint64, error) {
	ticks := func(at int64) int64 { return (window.end - 1 - max(at, window.start)) / l.tick }
	// better reports whether one tuple is ahead of another, field by field.
	better := func(these, those []int64) bool {
		for i, f := range b.fields {
			if these[i] != those[i] {
				return these[i] > those[i] != f.fewest
			}
		}
		return false
	}
	values, left := make([]int64, len(b.fields)), ticks(window.start)
	for i, c := range all {
		ahead := better(c.values, values)
		switch b.score {
		case "sum":
			if better(c.values, make([]int64, len(b.fields))) {
				left = min(left, ticks(c.time))
			}
			for f := range values {
				values[f] += c.values[f]
			}
		case "best":
			if i == 0 || ahead {
				values, left = c.values, ticks(c.time)
			} else if slices.Equal(c.values, values) {
				left = max(left, ticks(c.time))
			}
		case "last":
			if i == 0 || ticks(c.time) < left || ticks(c.time) == left && ahead {
				values, left = c.values, ticks(c.time)
			}
		}
	}
	code := new(big.Int)
	for i, f := range b.fields {
		value := values[i]
		if value > f.most || value < 0 && !f.signed || value < -f.most {
			return 0, fmt.Errorf("%s is %d, and may be %d: the records ought to overflow", f.name, value, f.most)
		}
		if f.fewest {
			value = f.most - value
		}
		if f.signed && l.wide {
			value += f.most
		}
		code.Add(code, new(big.Int).Mul(l.weights[i], big.NewInt(value)))
	}
	code.Lsh(code, l.k).Add(code, big.NewInt(left))
	if l.wide {
		return code.Add(code, new(big.Int).Lsh(big.NewInt(1), 52)).Uint64(), nil
	}
	score, exact := new(big.Rat).SetFrac(code, new(big.Int).Lsh(big.NewInt(1), l.k)).Float64()
	if !exact {
		return 0, fmt.Errorf("%v of 2^%d is no double", code, l.k)
	}
	return math.Float64bits(score), nil
}

// mayOverflow reports whether the sum of a member's changes of a field exceeds its range.
func (w *world) mayOverflow(user string) bool {
	for n := range max(1, len(w.setup.Books)) {
		sums := map[string]int64{}
		for _, p := range w.kafka.partitions {
			p.visible(0, func(r *stored) {
				v := w.judged(recordOf(p.id, r, false), n)
				if v.user != user || v.reason != "" {
					return
				}
				for _, part := range v.parts {
					if part.board.score != "sum" || part.board.fields[0].signed {
						continue
					}
					for i, f := range part.board.fields {
						sums[part.board.name+part.window.name+f.name] += part.values[i]
						if sums[part.board.name+part.window.name+f.name] > f.most {
							sums["out"] = 1
						}
					}
				}
			})
		}
		if sums["out"] > 0 {
			w.count(overflown)
			return true
		}
	}
	return false
}
