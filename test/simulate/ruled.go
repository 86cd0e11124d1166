package simulate

// This file adds boards with rules of their own, several at once, next to those with the default rule:
// best, last, and sums of several fields, for which more or fewer are better. It also changes the
// configuration while the world runs: the configuration of the process that starts a sweep decides how its
// records count.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	boardrules "github.com/standings/standings/internal/rules"
)

// The seeds after which worlds have boards with rules, and changing configurations, too.
const (
	ruledFrom = int64(1) << 41
	booksFrom = int64(1) << 42
)

const (
	configure    = "the configuration changes"
	byOtherRules = "a sweep that was begun by other rules goes on"
	rebuiltOther = "a rebuild into a sweep that was begun by other rules"
	overflown    = "a field of a sum would leave its range"
	lacksFields  = "an event that lacks a field of its board"
)

// ruledField is a field of a board.
type ruledField struct {
	name   string
	most   int64
	fewest bool
	signed bool // can be negative: points of the default rule
}

// ruledBoard is a board with a rule of its own.
type ruledBoard struct {
	name, score string
	fields      []ruledField
	periods     []string // nil: all periods
}

func (b *ruledBoard) has(period string) bool {
	return b.periods == nil || slices.Contains(b.periods, period)
}

// book is the part of a configuration that decides how records count. The zero value is the default.
type book struct {
	elsewhere  bool     // some fields have other names in events
	boards     []string // the permitted boards; nil: any
	maxFuture  time.Duration
	lateness   time.Duration
	duplicates int64
}

// path returns the name of a field in events.
func (b *book) path(field string) string {
	if b.elsewhere && slices.Contains(moved, field) {
		return "other_" + field
	}
	return field
}

// moved lists the fields that have another name in some configurations. An event contains both.
var moved = []string{"points", "stage", "gold"}

func (b *book) latenessOf(period string) time.Duration {
	if period == "dash" {
		return dashLateness
	}
	return b.lateness
}

// bookOf returns the configuration with a number.
func (s *setup) bookOf(n int) *book {
	if len(s.Books) == 0 {
		return &book{maxFuture: maxFuture, lateness: lateness, duplicates: s.Duplicates}
	}
	return &s.Books[n]
}

// ruled gives the plan boards with rules, and several configurations if they change.
func (p *plan) ruled(change bool) {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x4a1e5))}
	s := &p.setup
	few := ruledField{name: "revives", most: int64(d.pick(2, 99)), fewest: true}
	s.Ruled = []ruledBoard{
		{name: "eu", score: "best", fields: []ruledField{{name: "stage", most: int64(d.pick(9, 99))}, few}},
		{name: "us", score: "sum", fields: []ruledField{{name: "gold", most: 999}, {name: "faults", most: 999, fewest: true}}},
		{name: "cup", score: "last", fields: []ruledField{{name: "elo", most: int64(d.pick(3, 100_000_000_000))}}}, // its ticks are long, so that many times are equal
		{name: "lap", score: "best", fields: []ruledField{{name: "lap", most: 60, fewest: true}}},
	}
	if d.IntN(2) == 0 {
		s.Ruled[2].fields = append(s.Ruled[2].fields, few)
	}
	if d.IntN(3) == 0 {
		s.Ruled[3].periods = s.Periods[:1]
	}
	if change {
		p.changes(d)
	}
	records := 0
	for i := range p.sendings {
		records += len(p.sendings[i].records)
	}
	over := 0 // one event in so many exceeds a range (0: none); with too many, the refused ones are unknown
	if s.Start != starts.FromTime && s.Start != starts.FromLatest && d.IntN(2) == 0 {
		over = 12 + records/4
	}
	named := []byte(`{"user_id":`)
	small := d.IntN(2) == 0
	var before []int64
	for i := range p.sendings {
		all := p.sendings[i].records
		for j := range all {
			v, has := bytes.CutPrefix(all[j].value, named)
			var user string
			var points, at int64
			if _, err := fmt.Sscanf(strings.NewReplacer(",", " ", "}", " ").Replace(string(v)), "%q \"points\":%d \"occurred_at\":%d", &user, &points, &at); !has || err != nil || at < 0 || at > all[j].time+maxFuture.Milliseconds() {
				continue
			}
			if len(before) > 0 && d.IntN(2) == 0 { // times that are equal, or nearly
				if then := before[d.pick(0, max(0, len(before)-6))+d.IntN(min(6, len(before)))] + int64(d.IntN(3)/2); then <= all[j].time {
					at = then
				}
			}
			before = append(before, at)
			if len(user) < 6 && small {
				user = fmt.Sprint("u", d.IntN(4))
			}
			all[j].value = d.ruledEvent(s, user, points, at, over)
		}
	}
}

// ruledEvent draws an event.
func (d *drawer) ruledEvent(s *setup, user string, points, at int64, over int) []byte {
	boards := pick(d, []string{"eu"}, []string{"eu", "us"}, []string{"us"}, []string{"cup"}, []string{"cup", "us", "lap"}, []string{"eu", "global", "us", "cup", "lap"}, []string{"global"}, []string{"lap", "global"})
	fields := map[string]int64{}
	for _, b := range s.Ruled {
		for _, f := range b.fields {
			fields[f.name] = int64(d.IntN(int(min(f.most, 5)) + 1))
		}
	}
	fields["gold"], fields["faults"] = int64(d.pick(0, 0, 1, 2)), int64(d.IntN(3))
	if over > 0 && d.IntN(over) == 0 {
		user, boards = fmt.Sprint("over", d.IntN(2)), pick(d, []string{"us"}, []string{"eu", "us"})
		fields[pick(d, "gold", "faults", "faults")] = 600
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"user_id":%q,"points":%d,"occurred_at":%d,"board":["%s"],"other_points":%d`, user, points, at, strings.Join(boards, `","`), -points+3)
	lacks := ""
	if d.IntN(20) == 0 {
		lacks = pick(d, "stage", "faults", "elo", "lap")
	}
	for _, name := range []string{"stage", "revives", "gold", "faults", "elo", "lap"} {
		value := fields[name]
		text := fmt.Sprint(value)
		switch {
		case name == lacks && value%2 == 0:
			text = "4000000"
		case name == lacks:
			continue
		}
		fmt.Fprintf(&b, `,%q:%s`, name, text)
		if slices.Contains(moved, name) {
			fmt.Fprintf(&b, `,"other_%s":%d`, name, min(value+1, 9))
		}
	}
	if len(s.Books) > 0 && d.IntN(2) == 0 {
		fmt.Fprintf(&b, `,"event_id":"e%d"`, d.IntN(4))
	}
	return append([]byte(b.String()), '}')
}

// changes draws the configurations and when they change. A window that a rebuild keeps, because it cannot
// be complete, would be counted under several configurations. So the logs are complete and are read from
// the beginning.
func (p *plan) changes(d *drawer) {
	s := &p.setup
	s.Shards, s.Masters, s.Beheaded, s.Duplicates, s.Start = 0, 0, 0, 0, starts.FromEarliest
	s.Less = 0
	for i := range s.Processes { // to finish a sweep under others' rules, a process needs the minimum of fold_memory
		s.Processes[i].foldMemory = memory.LeastMemory(maxEventBytes)
	}
	unlike := map[string]bool{truncate: true, gapOpens: true, wipe: true, leap: true}
	p.events = slices.DeleteFunc(p.events, func(f fault) bool { return unlike[f.kind] })
	s.Books = []book{{maxFuture: maxFuture, lateness: lateness}}
	for range d.pick(1, 1, 2) {
		b := book{maxFuture: maxFuture, lateness: lateness}
		for range 1 + d.IntN(2) {
			switch d.IntN(5) {
			case 0:
				b.elsewhere = true
			case 1:
				b.boards = []string{"global", "eu", "us"}
			case 2:
				b.maxFuture = time.Minute
			case 3:
				b.lateness = 30 * day
			case 4:
				b.duplicates = int64(d.pick(2, 30))
			}
		}
		s.Books = append(s.Books, b)
	}
	for range d.pick(1, 2, 3) {
		at := 5 + d.IntN(100)
		p.events = append(p.events, fault{at: at, kind: configure, n: d.IntN(1 << 16)})
		if d.IntN(3) > 0 {
			p.events = append(p.events, fault{at: at, kind: crash, on: inSweep, n: d.IntN(1 << 16)})
		}
		if d.IntN(4) == 0 {
			p.events = append(p.events, fault{at: at + d.IntN(30), kind: rebuilds, n: d.IntN(1 << 16)})
		}
	}
	if d.IntN(2) == 0 {
		s.FetchBytes = 64 << 10
	}
}

// configures changes the configuration for all processes that start later.
func (w *world) configures(f fault) bool {
	w.book = (w.book + 1 + f.n%(len(w.setup.Books)-1)) % len(w.setup.Books)
	w.tellf("the configuration is the one of number %d now", w.book)
	alive := w.alive()
	if f.n>>4%2 == 0 && len(alive) > 0 {
		p := alive[f.n>>5%len(alive)]
		w.tellf("process %d is told to stop, and another comes", p.id)
		p.stopped = true
		p.end()
		w.launch(w.another(f.n >> 3))
	}
	return true
}

// --- the product's configuration ---------------------------------------------------------

// rules sets a configuration's rules in that of a consumer.
func (p *process) rules(c *ingest.Config) {
	s := p.w.setup
	if s.Ruled == nil {
		return
	}
	counting := p.w.counting(p.book)
	c.Rules, c.Events, c.Duplicates = counting.Windows, counting.Events, counting.Duplicates
	c.RulesText = rulesText(p.book)
	c.ReadRules = func(text string) (rulebook.Counting, error) {
		n := 0
		if _, err := fmt.Sscanf(text, "configuration %d", &n); err != nil {
			return rulebook.Counting{}, fmt.Errorf("read %q: %w", text, err)
		}
		return p.w.counting(n), nil
	}
}

func (w *world) counting(n int) rulebook.Counting {
	b, s := w.setup.bookOf(n), w.setup
	c := rulebook.Counting{
		Events:     event.Rules{MaxEventBytes: maxEventBytes, MaxPoints: s.MaxPoints, MaxFuture: b.maxFuture.Milliseconds(), Boards: b.boards, Others: boardrules.Boards{}},
		Windows:    fold.Rules{Boards: map[string]*fold.Board{}},
		Duplicates: b.duplicates,
	}
	for _, name := range s.Periods {
		c.Windows.Periods = append(c.Windows.Periods, fold.Period{Rule: w.rule(name), Lateness: b.latenessOf(name).Milliseconds()})
	}
	var others []event.Other
	for i := range s.Ruled {
		of := &s.Ruled[i]
		board := &fold.Board{Rule: of.rule(), Ticks: map[periods.Period]int64{}}
		for n, name := range s.Periods {
			if of.has(name) {
				board.Periods |= 1 << n
				board.Ticks[periods.Period(name)] = w.layout(of, name).Tick
			}
		}
		c.Windows.Boards[of.name], c.Events.Others[of.name] = board, board.Rule
		for _, f := range of.fields {
			other := event.Other{Name: f.name, Path: b.path(f.name)}
			if !slices.Contains(others, other) {
				others = append(others, other)
			}
		}
	}
	var err error
	if c.Events.Fields, err = event.NewFields(event.Paths{Points: b.path("points")}, others...); err != nil {
		panic(err)
	}
	return c
}

func (b *ruledBoard) rule() *boardrules.Rule {
	var list []codec.Field
	for _, f := range b.fields {
		list = append(list, codec.Field{Name: f.name, Max: f.most, Fewest: f.fewest})
	}
	fields, err := codec.NewFields(list...)
	if err != nil {
		panic(err)
	}
	r, err := boardrules.New(boardrules.Score(b.score), fields)
	if err != nil {
		panic(err)
	}
	return &r
}

func (w *world) layout(b *ruledBoard, period string) codec.TupleLayout {
	cut := w.rule(period)
	l, err := codec.NewTupleLayout(codec.Kind(w.setup.Layout), cut.Length(), b.rule().Fields)
	if err != nil {
		panic(err) // the plan is wrong
	}
	return l
}

// ruledBoards returns the boards of a store, which are the same for all configurations.
func (w *world) ruledBoards() map[string]*ranking.Ruled {
	if w.setup.Ruled == nil {
		return nil
	}
	all := map[string]*ranking.Ruled{}
	for i := range w.setup.Ruled {
		b := &w.setup.Ruled[i]
		r := &ranking.Ruled{Rule: b.rule(), Layouts: map[periods.Period]codec.TupleLayout{}}
		for _, name := range w.setup.Periods {
			if b.has(name) {
				r.Layouts[periods.Period(name)] = w.layout(b, name)
			}
		}
		all[b.name] = r
	}
	return all
}

// --- the configuration by which records count ---------------------------------------------

// counted is a range of offsets with the configuration by which its records count.
type counted struct {
	from, to int64
	book     int
}

// begins records the configuration of a sweep: that of the process that sent its first piece.
func (sh *shard) begins(c *call) {
	field, expected, next := piece(c.command.Args)
	p := sh.w.idOf(field)
	if strings.Contains(expected, "@") {
		if n := sh.bookAt(p, fromOf(expected)); n != c.from.book {
			sh.w.count(byOtherRules)
		}
		return
	}
	_, to, _ := parse(next)
	sh.books[p] = append(slices.Clip(sh.books[p]), counted{fromOf(expected), to, c.from.book})
}

func fromOf(position string) int64 {
	from, _, _ := parse(position)
	return from
}

// bookAt returns the configuration by which a record counts.
func (sh *shard) bookAt(partition int, offset int64) int {
	all := sh.books[partition]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].from <= offset && offset < all[i].to {
			return all[i].book
		}
	}
	return 0
}

// shadowed records a piece of a rebuild. A rebuild uses its own configuration, except for the sweep with
// which it ends: the position names that sweep's rules.
func (w *world) shadowed(c *call) {
	if c.command.Name() == "start.lua" { // repeated for the partitions of a topic that was started meanwhile
		for args := arguments(c.command.Args)[2:]; len(args) > 0; args = args[5:] {
			delete(c.from.shadow, w.idOf(args[0]))
		}
	}
	if c.command.Name() != "apply.lua" {
		return
	}
	field, expected, next := piece(c.command.Args)
	if strings.Contains(expected, "@") {
		return
	}
	p := w.idOf(field)
	_, to, _ := parse(next)
	by := c.from.book
	if _, rules, ok := strings.Cut(next, "#"); ok {
		by = w.bookBy(rules)
	}
	if by != c.from.book {
		w.count(rebuiltOther)
	}
	c.from.shadow[p] = append(c.from.shadow[p], counted{fromOf(expected), to, by})
}

// bookBy returns the configuration with a fingerprint: the first 16 digits of the SHA-256 of its text.
func (w *world) bookBy(fingerprint string) int {
	for n := range w.setup.Books {
		if sum := sha256.Sum256([]byte(rulesText(n))); hex.EncodeToString(sum[:8]) == fingerprint {
			return n
		}
	}
	w.failf("no configuration has the fingerprint %s", fingerprint)
	return 0
}

func rulesText(n int) string { return fmt.Sprintf("configuration %d", n) }

// rebuiltBy records that everything counts as a rebuild has read it.
func (sh *shard) rebuiltBy(p *process) {
	if len(sh.w.setup.Books) > 0 {
		sh.books = maps.Clone(p.shadow)
	}
}
