// Package oracle works out what the standings must be from the published records
// alone, by the contract and nothing else: it shares no code with the consumer, only the
// standard library, and does everything in the plainest way it can.
//
//	record ─▶ judge (encoding/json, math/big) ─▶ windows (time) ─▶ standings ─▶ scores (math/big)
//
// Standings don't depend on the order, so records come in any. The one
// exception is overflow: which events are refused depends on the order and on cuts,
// so whoever publishes them has to say it (Record.Overflow).
package oracle

import (
	"fmt"
	"sync"
	"time"
)

// Config is what the consumer was configured with. Every field is set.
type Config struct {
	Zone      *time.Location
	WeekStart time.Weekday
	Periods   []Period // the enabled ones
	Boards    []string // none: any name
	// Rules are what boards count, by name, AnyBoard's where one isn't named. Without, all are
	// by the default rule.
	Rules map[string]Board

	Fields map[string][]string // where a field stands, by its name; by default there

	MaxPoints     int64
	MaxEventBytes int
	MaxFuture     time.Duration
	Lateness      time.Duration
	Names         bool // members are called by the field name
	// Borders are where dates begin as windows' borders, in Unix ms, where that is not by the clock of
	// their zone: "monthly Europe/Berlin 2026-12-01".
	Borders    map[string]int64
	Duplicates int64 // offsets that a repeat is looked for; 0: repeats count
}

// Period is an enabled period: daily, weekly, monthly, quarterly, yearly or all-time, or one of
// another name. That is a calendar if Calendar is set, else windows of equal length if Every is,
// else a season.
type Period struct {
	Name      string
	Layout    string // readable or wide
	Retention time.Duration
	Lateness  *time.Duration // nil: as of all

	Calendar  string         // a period above, whose windows it has
	Zone      *time.Location // with Calendar; nil: as of all
	WeekStart *time.Weekday

	Start, End int64 // of a season, Unix ms
	Every      int64 // ms, from Start on
}

// Record is a committed record.
type Record struct {
	Topic     string // empty where there is one
	Partition int
	Offset    int64
	Time      int64 // Unix ms; at or below 0 it has none
	Value     []byte
	Headers   []Header
	before    bool // see Before
	Overflow  bool // it is refused, for its member's sum would leave the range
	// Without are the windows, by their names in the listing, that were final when it came.
	Without map[string]bool
	// Lacks reports which periods of a board were added after the record was counted; nil: none.
	Lacks func(board, period string) bool
}

// At is where a record stands.
type At struct {
	Partition int
	Offset    int64
}

func (a At) String() string { return fmt.Sprintf("%d/%d", a.Partition, a.Offset) }

// Counts is what became of all records.
type Counts struct {
	Applied, Late, Early, Skipped, Duplicates int64
	Dead                                      map[string]int64 // by reason
}

// DeadLettered is the number of bad records, for all reasons.
func (c Counts) DeadLettered() int64 {
	n := int64(0)
	for _, dead := range c.Dead {
		n += dead
	}
	return n
}

// Oracle sums up records. It is safe for concurrent use.
type Oracle struct {
	config Config

	mu      sync.Mutex
	counts  Counts
	reasons map[At]string
	ids     map[At]string        // of the bad ones
	windows map[string][]*window // by period
	boards  map[board]*sorted
	// names are what users are called by events of the same longest window, by user and the end of
	// its retention.
	names map[string]map[int64]name

	records []Record // with Duplicates
	behind  bool     // not all of them were gone through
}

// board is one sorted set: a window of a board.
type board struct {
	name   string
	window *window
}

// name is what a user is called, by an event at a time, Unix ms.
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

// sorted is what a sorted set has.
type sorted struct {
	layout  layout
	members map[string]*standing
}

// New makes an oracle.
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

// Add takes a committed record, in any order, each once. It returns the reason why it
// is bad, empty where it isn't.
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

// taken are the windows of a board that take an event: those that ended no longer than the
// lateness before its record's time. It is early before the start of all periods that the board had then.
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

// Counts is what must have become of the records so far.
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

// Bad are the records that must be dead-lettered, and why.
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

// ID is the id that the dead letter of a bad record names its event by, empty for none.
func (o *Oracle) ID(at At) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	return o.ids[at]
}

// Judge says why a record is bad, and nothing of one that isn't.
func (o *Oracle) Judge(r Record) (reason string) {
	if r.Value != nil {
		_, _, reason = o.config.judge(r)
	}
	return reason
}
