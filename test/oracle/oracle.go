// Package oracle computes the expected standings from the published records and the contract alone. It shares no
// code with the consumer, uses only the standard library, and prefers the simplest method everywhere.
//
//	record ─▶ judge (encoding/json, math/big) ─▶ windows (time) ─▶ standings ─▶ scores (math/big)
//
// Standings do not depend on the order, so records may arrive in any order. The only exception is overflow:
// which events are refused depends on the order and on the batches, so the publisher must mark these records
// (Record.Overflow).
package oracle

import (
	"fmt"
	"sync"
	"time"
)

// Config is the consumer's configuration. Every field is set.
type Config struct {
	Zone      *time.Location
	WeekStart time.Weekday
	Periods   []Period // the enabled ones
	Boards    []string // empty: any name
	// Rules has the boards' rules by name; AnyBoard's applies to other names. If it is empty, all boards use
	// the default rule.
	Rules map[string]Board

	Fields map[string][]string // the path of a field, by its name; default: the name itself

	MaxPoints     int64
	MaxEventBytes int
	MaxFuture     time.Duration
	Lateness      time.Duration
	Names         bool // members have names, in the field name
	// Borders has the starts of dates as window borders, in Unix ms, that differ from the clock of their zone:
	// "monthly Europe/Berlin 2026-12-01".
	Borders    map[string]int64
	Duplicates int64 // number of offsets in which a repeat is a duplicate; 0: repeats count
}

// Period is an enabled period: daily, weekly, monthly, quarterly, yearly or all-time, or a period with another
// name. The latter is a calendar if Calendar is set, otherwise windows of equal length if Every is set, otherwise
// a season.
type Period struct {
	Name      string
	Layout    string // readable or wide
	Retention time.Duration
	Lateness  *time.Duration // nil: Config.Lateness

	Calendar  string         // a built-in period with the same windows
	Zone      *time.Location // with Calendar; nil: Config.Zone
	WeekStart *time.Weekday

	Start, End int64 // of a season, Unix ms
	Every      int64 // ms, from Start on
}

// Record is a committed record.
type Record struct {
	Topic     string // empty if there is only one
	Partition int
	Offset    int64
	Time      int64 // Unix ms; 0 or less means that it has no time
	Value     []byte
	Headers   []Header
	before    bool // see Before
	Overflow  bool // it is refused, since its member's sum would leave the range
	// Without has the windows, by their names in the listing, that were final when the record arrived.
	Without map[string]bool
	// Lacks reports whether a period was added to a board after the record was counted; nil: none was.
	Lacks func(board, period string) bool
}

// At is the position of a record.
type At struct {
	Partition int
	Offset    int64
}

func (a At) String() string { return fmt.Sprintf("%d/%d", a.Partition, a.Offset) }

// Counts has the numbers of records by result.
type Counts struct {
	Applied, Late, Early, Skipped, Duplicates int64
	Dead                                      map[string]int64 // by reason
}

// DeadLettered returns the number of bad records, for all reasons.
func (c Counts) DeadLettered() int64 {
	n := int64(0)
	for _, dead := range c.Dead {
		n += dead
	}
	return n
}

// Oracle accumulates records. It is safe for concurrent use.
type Oracle struct {
	config Config

	mu      sync.Mutex
	counts  Counts
	reasons map[At]string
	ids     map[At]string        // of bad records
	windows map[string][]*window // by period
	boards  map[board]*sorted
	// names has the users' names by user and by the end of retention of an event's longest window.
	names map[string]map[int64]name

	records []Record // if Config.Duplicates is set
	behind  bool     // some records have not been processed
}

// board is one sorted set: a window of a board.
type board struct {
	name   string
	window *window
}

// name is a user's name and the time of the event that set it, in Unix ms.
type name struct {
	time int64
	text string
}

func later(a, b name) name {
	if a.time > b.time || a.time == b.time && a.text > b.text {
		return a
	}
	return b
}

// sorted is the content of a sorted set.
type sorted struct {
	layout  layout
	members map[string]*standing
}

// New returns an oracle without records.
func New(c Config) *Oracle {
	o := &Oracle{config: c}
	o.reset()
	return o
}

func (o *Oracle) reset() {
	o.counts, o.reasons, o.ids, o.behind = Counts{Dead: map[string]int64{}}, map[At]string{}, map[At]string{}, false
	o.windows, o.boards = map[string][]*window{}, map[board]*sorted{}
	o.names = map[string]map[int64]name{}
}

// Add adds a committed record. Records may arrive in any order, each once. Add returns the reason why the record
// is bad, or "".
func (o *Oracle) Add(r Record) (reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.config.Duplicates > 0 {
		return o.later(r)
	}
	return o.now(r)
}

// now counts a record.
func (o *Oracle) now(r Record) (reason string) {
	if r.Value == nil {
		o.counts.Skipped++
		return ""
	}
	e, id, reason := o.config.judge(r)
	if reason == "" && r.Overflow {
		reason = "overflow"
	}
	if reason != "" {
		o.counts.Dead[reason]++
		o.reasons[At{r.Partition, r.Offset}] = reason
		o.ids[At{r.Partition, r.Offset}] = id
		return reason
	}
	counts, early, until := false, true, int64(0)
	for i, name := range e.boards {
		taken, ahead := o.taken(name, e.time, r)
		n := 0
		for _, w := range taken {
			if r.Without[fmt.Sprintf("%s:%s:%s", name, w.period.Name, w.name)] {
				continue
			}
			n++
			o.add(board{name, w}, e.user, e.values[i], e.time)
			until = max(until, w.end+w.period.Retention.Milliseconds())
		}
		counts, early = counts || n > 0, early && ahead
	}
	switch {
	case counts:
		o.counts.Applied++
		if e.name != "" {
			if o.names[e.user] == nil {
				o.names[e.user] = map[int64]name{}
			}
			o.names[e.user][until] = later(o.names[e.user][until], name{e.time, e.name})
		}
	case early:
		o.counts.Early++
	default:
		o.counts.Late++
	}
	return ""
}

// taken returns the windows of a board that accept an event: their end plus lateness is not before the record's
// time. The event is early if it precedes all periods that the board had then.
func (o *Oracle) taken(name string, at int64, r Record) (taken []*window, early bool) {
	b := o.config.rule(name)
	early = true
	for _, p := range o.config.Periods {
		if !b.has(p.Name) || r.Lacks != nil && r.Lacks(name, p.Name) || (p.Every > 0 || p.End > 0) && at < p.Start {
			continue
		}
		early = false
		if p.End > 0 && at >= p.End {
			continue
		}
		lateness := o.config.Lateness
		if p.Lateness != nil {
			lateness = *p.Lateness
		}
		if w := o.window(p, at); r.Time <= w.end+lateness.Milliseconds() {
			taken = append(taken, w)
		}
	}
	return taken, early
}

func (o *Oracle) add(b board, user string, values tuple, at int64) {
	set := o.boards[b]
	if set == nil {
		set = &sorted{o.config.layoutOf(b.window.period, o.config.rule(b.name)), map[string]*standing{}}
		o.boards[b] = set
	}
	s := set.members[user]
	if s == nil {
		s = &standing{}
		set.members[user] = s
	}
	s.take(set.layout.rule, set.layout, b.window, values, at)
}

// Counts returns the expected results of the records so far.
func (o *Oracle) Counts() Counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	c := o.counts
	c.Dead = map[string]int64{}
	for reason, n := range o.counts.Dead {
		c.Dead[reason] = n
	}
	return c
}

// Bad returns the records that must be dead-lettered, with their reasons.
func (o *Oracle) Bad() map[At]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	bad := map[At]string{}
	for at, reason := range o.reasons {
		bad[at] = reason
	}
	return bad
}

// ID returns the event id in the dead letter of a bad record, or "".
func (o *Oracle) ID(at At) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	return o.ids[at]
}

// Judge returns the reason why a record is bad, or "".
func (o *Oracle) Judge(r Record) (reason string) {
	if r.Value != nil {
		_, _, reason = o.config.judge(r)
	}
	return reason
}
